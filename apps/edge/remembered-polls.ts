import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Hono, type MiddlewareHandler } from 'hono';
import type { RememberedTokens } from '../../lib/auth/remembered-tokens.ts';
import type { HttpMetrics } from '../../lib/metrics.ts';
import { bearerOf, viewerFor } from './auth.ts';
import type { AnswerAtOnce } from './listen.ts';
import { keyOf, type RateLimiter } from './rate-limit.ts';
import { READINESS_HEADERS, wantsEvents } from './routes/readiness.ts';
import type { Statuses } from './statuses.ts';
import { etagOf, isKnown } from './watchers.ts';

const ROUTE = '/v1/programs/:id/readiness';
/** Without a query: a wait is not answered at once. */
const POLL = /^\/v1\/programs\/([0-9a-f-]{36})\/readiness$/;
/** What a caller may name its request, as Hono's request-id takes it. */
const REQUEST_ID = /^[\w\-=]{1,255}$/;
/** Any other is for the ordinary way to judge, which refuses what is none. */
const HOST = /^([\w.-]+|\[[\da-f:]+\])(:\d+)?$/i;
const MAX_TEXTS = 1_000;

export interface PollsDeps {
  tokens: RememberedTokens;
  limits: RateLimiter;
  statuses: Statuses;
  metrics: HttpMetrics;
  /** What adds the headers that every answer carries. */
  always: readonly MiddlewareHandler[];
  /** The origins for which those differ. */
  origins: readonly string[];
}

/** Names and values in turn, as Node writes them. */
type RawHeaders = readonly string[];

/** What an object is answered with, but for what is another each time. */
interface Answers {
  tag: string;
  ok: RawHeaders;
  notModified: RawHeaders;
}

/** What the same request of a connection came to before: who polls asks the same again and again. */
interface Asked {
  url: string;
  authorization: string | undefined;
  host: string | undefined;
  /** Of the person, for their limit. */
  key: string;
  /** As long as the token may be believed; milliseconds since the epoch. */
  until: number;
  look: () => string | undefined;
}

/**
 * Answers a poll of readiness at once where this process remembers who asks, that they may see the programme and how it
 * stands; anything else, and whatever is to be refused, is left to the ordinary way. An answer is the same on both ways, but
 * polls are many and mostly learn nothing (docs/decisions/a-poll-costs-next-to-nothing.md). It is limited as every request
 * and counted, but neither timed nor logged.
 */
export function answerPolls({ tokens, limits, statuses, metrics, always, origins }: PollsDeps): AnswerAtOnce {
  /** By origin, then by object; until an origin's headers are known, which takes microseconds, polls go the ordinary way. */
  const answersFor = new Map<string, (text: string) => Answers>();
  for (const origin of ['', ...origins]) {
    void headersOf(always, origin).then((headers) => answersFor.set(origin, rememberAnswers(headers)));
  }

  const connections = new WeakMap<IncomingMessage['socket'], Asked>();
  /** Null where it is no poll, or nobody's whose token is remembered. */
  const askedBy = ({ method, url = '', headers, socket }: IncomingMessage): Asked | null => {
    if (method !== 'GET' || wantsEvents(headers.accept)) return null;
    const { authorization, host } = headers;
    const before = connections.get(socket);
    const isSame = before?.url === url && before.authorization === authorization && before.host === host;
    if (isSame && Date.now() < before.until) return before;
    const programId = POLL.exec(url)?.[1];
    const token = bearerOf(authorization);
    const verified = programId && token ? tokens.known(token) : undefined;
    const viewer = verified && viewerFor(verified.who);
    if (!programId || !viewer || !HOST.test(host ?? '')) return null;
    const { who, until } = verified;
    const asked = { url, authorization, host, key: keyOf(who), until, look: statuses.lookAt(programId, viewer) };
    connections.set(socket, asked);
    return asked;
  };

  const counterOf = (status: number) => metrics.counter({ method: 'GET', route: ROUTE, status });
  const [countOk, countNotModified] = [counterOf(200), counterOf(304)];
  return (request, response) => {
    const asked = askedBy(request);
    const text = asked?.look();
    if (!asked || text === undefined) return false;
    const { headers, socket } = request;
    const answersOf = answersFor.get(headers.origin ?? '') ?? answersFor.get('');
    const limit =
      answersOf && limits.takeAtOnce({ socket, forwardedFor: oneOf(headers['x-forwarded-for']) }, asked.key);
    if (!limit) return false;

    const { tag, ok, notModified } = answersOf(text);
    const known = headers['if-none-match'];
    const given = oneOf(headers['x-request-id']);
    const id = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    if (known !== undefined && isKnown(known, tag)) {
      countNotModified();
      response.writeHead(304, notModified.concat(limit, 'x-request-id', id)).end();
    } else {
      countOk();
      response.writeHead(200, ok.concat(limit, 'x-request-id', id)).end(text);
    }
    return true;
  };
}

/** Makes what each object is answered with, once. */
function rememberAnswers(common: RawHeaders): (text: string) => Answers {
  const answers = new Map<string, Answers>();
  return (text) => {
    const known = answers.get(text);
    if (known) return known;
    if (answers.size >= MAX_TEXTS) answers.clear();
    const tag = etagOf(text);
    const notModified = [...common, 'etag', tag];
    const length = String(Buffer.byteLength(text));
    const ok = [...notModified, 'content-type', 'application/json', 'content-length', length];
    const made = { tag, notModified, ok };
    answers.set(text, made);
    return made;
  };
}

/** Node joins what is sent twice under such a name; only `set-cookie` is ever a list. */
const oneOf = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined);

/** What the middleware adds to an answer to this origin that has the headers of readiness. */
async function headersOf(middleware: readonly MiddlewareHandler[], origin: string): Promise<RawHeaders> {
  const app = new Hono();
  app.use(...middleware);
  app.get('/', () => new Response(null, { headers: READINESS_HEADERS }));
  const response = await app.request('/', origin === '' ? undefined : { headers: { origin } });
  return [...response.headers].flat();
}
