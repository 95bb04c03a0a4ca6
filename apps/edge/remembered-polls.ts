import { randomUUID } from 'node:crypto';
import { Hono, type MiddlewareHandler } from 'hono';
import type { RememberedTokens } from '../../lib/auth/remembered-tokens.ts';
import type { HttpObservation } from '../../lib/metrics.ts';
import { bearerOf, viewerFor } from './auth.ts';
import type { RateLimiter } from './rate-limit.ts';
import { READINESS_HEADERS, wantsEvents } from './routes/readiness.ts';
import type { Statuses } from './statuses.ts';
import { etagOf, isKnown } from './watchers.ts';

type Fetch = Hono['fetch'];

const ROUTE = '/v1/programs/:id/readiness';
/** Without a query: a wait is not answered at once. */
const POLL = /^https?:\/\/[^/]+\/v1\/programs\/([0-9a-f-]{36})\/readiness$/;
/** What a caller may name its request, as Hono's request-id takes it. */
const REQUEST_ID = /^[\w\-=]{1,255}$/;
const MAX_TAGS = 1_000;

export interface PollsDeps {
  tokens: RememberedTokens;
  limits: RateLimiter;
  statuses: Statuses;
  count: (observed: HttpObservation) => void;
  /** What adds the headers that every answer carries. */
  always: readonly MiddlewareHandler[];
  /** The origins for which those differ. */
  origins: readonly string[];
}

/**
 * Answers a poll of readiness at once where this process remembers who asks, that they may see the programme and how it
 * stands; anything else, and whatever is to be refused, takes the ordinary way. An answer is the same on both ways, but
 * polls are many and mostly learn nothing (docs/decisions/a-poll-costs-next-to-nothing.md). It is counted and limited as every
 * request, and not logged.
 */
export function answerPolls(ordinary: Fetch, { tokens, limits, statuses, count, always, origins }: PollsDeps): Fetch {
  /** By origin; until they are known, which is a matter of microseconds, polls take the ordinary way. */
  const headersFor = new Map<string, Record<string, string>>();
  for (const origin of ['', ...origins]) {
    void headersOf(always, origin).then((headers) => headersFor.set(origin, headers));
  }
  const tags = new Map<string, string>();
  const tagOf = (text: string) => {
    const known = tags.get(text);
    if (known !== undefined) return known;
    const tag = etagOf(text);
    if (tags.size >= MAX_TAGS) tags.clear();
    tags.set(text, tag);
    return tag;
  };

  // No promise on this way: node-server writes an answer that is there at once by a shorter one of its own.
  const answer = (request: Request, env: unknown, poll: Poll): Response | null => {
    const start = performance.now();
    const { headers } = request;
    const common = headersFor.get(headers.get('origin') ?? '') ?? headersFor.get('');
    if (!common) return null;
    const limit = limits.takeAtOnce({ env, forwardedFor: headers.get('x-forwarded-for') }, poll.who);
    if (limit === null) return null;
    const given = headers.get('x-request-id') ?? '';
    const tag = tagOf(poll.text);
    const known = headers.get('if-none-match');
    const isSame = known !== null && isKnown(known, tag);
    const said: Record<string, string> = {
      ...common,
      ...limit,
      'x-request-id': REQUEST_ID.test(given) ? given : randomUUID(),
      etag: tag,
    };
    if (!isSame) said['content-type'] = 'application/json';
    const status = isSame ? 304 : 200;
    count({ method: 'GET', route: ROUTE, status, seconds: (performance.now() - start) / 1_000 });
    return new Response(isSame ? null : poll.text, { status, headers: said });
  };

  return (request, env, context) => {
    const poll = pollOf(request, tokens, statuses);
    return (poll && answer(request, env, poll)) ?? ordinary(request, env, context);
  };
}

interface Poll {
  who: NonNullable<ReturnType<RememberedTokens['known']>>;
  text: string;
}

/** A poll that can be answered from memory, with its answer. */
function pollOf(request: Request, tokens: RememberedTokens, statuses: Statuses): Poll | null {
  if (request.method !== 'GET') return null;
  const programId = POLL.exec(request.url)?.[1];
  if (programId === undefined || wantsEvents(request.headers.get('accept'))) return null;
  const token = bearerOf(request.headers.get('authorization') ?? undefined);
  const who = token === undefined ? undefined : tokens.known(token);
  const viewer = who && viewerFor(who);
  const text = viewer && statuses.peek(programId, viewer);
  return who && text !== undefined && text !== null ? { who, text } : null;
}

/** What the middleware adds to an answer to this origin that has the headers of readiness. */
async function headersOf(middleware: readonly MiddlewareHandler[], origin: string): Promise<Record<string, string>> {
  const app = new Hono();
  app.use(...middleware);
  app.get('/', () => new Response(null, { headers: READINESS_HEADERS }));
  const response = await app.request('/', origin === '' ? undefined : { headers: { origin } });
  return Object.fromEntries(response.headers);
}
