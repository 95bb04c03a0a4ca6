import { once } from 'node:events';
import { type Agent, get, type IncomingMessage } from 'node:http';
import type { Announcer } from '../../lib/announce.ts';
import type { Database } from '../../lib/db/client.ts';
import { findRender, markReady } from '../../lib/db/renders.ts';

/** Devices that watch one programme, each in its way. */
export const POLLERS = 200;
/** Whose they are: as many devices each as one person may have waiting at once in one process. */
export const PATIENTS = 10;
/** How often a plain poller asks. */
const POLL_MS = 250;

/** What an edge answered to one of them. */
export interface Answer {
  status: number | undefined;
  etag: string;
  text: AsyncIterable<string>;
}
export type Ask = (path: string, headers: Record<string, string>) => Promise<Answer>;

/** Over a connection of one's own, and through Node's own client: two hundred of them cost the machine less than `fetch`. */
export const over =
  (url: string, agent: Agent): Ask =>
  async (path, headers) => {
    const request = get(`${url}${path}`, { headers, agent, signal: AbortSignal.timeout(50_000) });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return {
      status: response.statusCode,
      etag: response.headers.etag ?? '',
      text: response.setEncoding('utf8') as AsyncIterable<string>,
    };
  };

const isReady = (text: string) => text.includes('"status":"ready"');

/** The words of an answer until they say that it is ready, or it ends. */
async function readUntilReady({ status, text }: Answer, onText: (text: string) => void = () => {}): Promise<boolean> {
  if (status !== 200 && status !== 304) throw new Error(`answered ${status}`);
  let all = '';
  for await (const chunk of text) {
    all += chunk;
    if (isReady(all)) return true;
    onText(all);
  }
  return false;
}

/** Each sees `ready` once, and then resolves to when; `began` is to be called with its first answer. */
type Kind = (
  ask: (query?: string, headers?: Record<string, string>) => Promise<Answer>,
  began: () => void,
) => Promise<number>;

const KINDS = {
  poll: async (ask, began) => {
    for (let known: Record<string, string> = {}; ; ) {
      const answer = await ask('', known);
      known = { 'if-none-match': answer.etag };
      if (await readUntilReady(answer)) return Date.now();
      began();
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  },
  wait: async (ask, began) => {
    const first = await ask();
    const known = { 'if-none-match': first.etag };
    if (await readUntilReady(first)) return Date.now();
    began();
    for (;;) if (await readUntilReady(await ask('?wait=25', known))) return Date.now();
  },
  stream: async (ask, began) => {
    const saw = await readUntilReady(await ask('', { accept: 'text/event-stream' }), (text) => {
      if (text.includes('event: readiness')) began();
    });
    if (!saw) throw new Error('the stream ended before it was ready');
    return Date.now();
  },
} satisfies Record<string, Kind>;
const kindOf = (nth: number) => (['poll', 'wait', 'stream'] as const)[nth % 4] ?? 'wait';

/** Two hundred at once over these edges, as the patients whose tokens these are. */
export function watchAll(asks: readonly ((nth: number) => Ask)[], path: string, tokens: readonly string[]) {
  let left = POLLERS;
  let everybodyBegan = () => {};
  const began = new Promise<void>((resolve) => {
    everybodyBegan = resolve;
  });
  const seen = Array.from({ length: POLLERS }, (_, nth) => {
    let isNew = true;
    const first = () => {
      if (isNew && --left === 0) everybodyBegan();
      isNew = false;
    };
    // Kinds, edges and patients are mixed: each patient has twenty devices, of which fifteen wait or listen.
    const ask = asks[Math.floor(nth / 4) % asks.length]?.(nth);
    if (!ask) throw new Error('no edge to ask');
    const authorization = `Bearer ${tokens[Math.floor(nth / 8) % tokens.length]}`;
    return KINDS[kindOf(nth)]((query = '', headers = {}) => ask(path + query, { authorization, ...headers }), first);
  });
  const all = Promise.all(seen).then((at) => at.map((ms, nth) => ({ ms, kind: kindOf(nth) })));
  return {
    /** When each has had a first answer. */
    began: Promise.race([began, all.then(() => {})]),
    /** When each saw `ready`. */
    all,
  };
}

/** Makes the last render ready as a worker does, in this process, and answers when the row says it was. */
export async function finishAsWorker(
  { db }: Pick<Database, 'db'>,
  renderId: string,
  announcer: Announcer,
): Promise<number> {
  const moved = await markReady(db, { id: renderId, videoGuid: 'video-1', cause: 'webhook' });
  if (!moved) throw new Error('it was not transcoding');
  announcer.changedSoon({ renders: [renderId] });
  const { readyAt } = (await findRender(db, renderId)) ?? {};
  if (!readyAt) throw new Error('it is not ready');
  return readyAt.getTime();
}

/** How long after the commit the last of each kind knew. */
export const latest = (seen: { ms: number; kind: string }[], committed: number) =>
  Object.fromEntries(
    Object.keys(KINDS).map((kind) => [
      kind,
      Math.max(...seen.filter((one) => one.kind === kind).map(({ ms }) => ms - committed)),
    ]),
  );
