import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Announcer, createAnnouncer } from '../../../lib/announce.ts';
import { openStatusBell, type StatusBell } from '../../../lib/cache/status-cache.ts';
import { type Database, openDatabase } from '../../../lib/db/client.ts';
import { findRender, markReady } from '../../../lib/db/renders.ts';
import { assignments, organisations } from '../../../lib/db/schema/index.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { anExercise } from '../../support/clinic.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { silentLog } from '../../support/log.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';
import { aPublishedProgram, moveTo, people, startEdge, statementsOf, testEnv, tokenFor } from './fixture.ts';

const who = people();
const POLLERS = 200;
/** Each shared by as many devices as one person may have waiting at once in one process. */
const PATIENTS = 10;
/** How often a plain poller asks. */
const POLL_MS = 250;
/** What a programme's end may take to reach everybody, Redis being there … */
const HEARD_MS = 1_000;
/** … and while it is not: what a process remembers, and a waiter's next look, half a second each; and a deadline of Redis. */
const ALONE_MS = 3_000;

const { startApp } = useAppProcesses({ until: afterAll, timeoutMs: 120_000 });
let testDatabase: TestDatabase;
let database: Database;
let redis: TcpProxy;
let bell: StatusBell;
let worker: Announcer;
let edges: ((nth: number) => Ask)[];
const agents: Agent[] = [];
let env: ReturnType<typeof testEnv>;
let exercise: string;
let tokens: string[];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase(testDatabase.url, { max: 4 });
  env = testEnv({ DATABASE_URL: testDatabase.url });
  redis = await startTcpProxy(env.REDIS_URL ?? '');
  env = { ...env, REDIS_URL: redis.url };
  const started = await Promise.all([startApp('edge', env), startApp('edge', env)]);
  edges = started.map(({ ready }) => () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return over(String(ready.url), agent);
  });
  bell = openStatusBell({ redisUrl: redis.url, prefix: env.REDIS_PREFIX ?? '', log: silentLog });
  worker = createAnnouncer(database.db, bell, silentLog);
  await database.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  exercise = (await anExercise(database.db, { orgId: who.manager.org })).id;
  tokens = await Promise.all(Array.from({ length: PATIENTS }, (_, nth) => tokenFor(patient(nth))));
});
afterAll(async () => {
  for (const agent of agents) agent.destroy();
  await worker.close();
  bell.close();
  await database.close();
  await redis.close();
  await testDatabase.drop();
});

const patient = (nth: number) => ({ ...who.patient, sub: `patient-${nth}` });

/** A programme of three videos, of which the last is still at Bunny, and ten patients who have been given it. */
async function almostReady({ db }: Pick<Database, 'db'>, exerciseId: string) {
  const { programId, renderIds } = await aPublishedProgram(db, who.manager.org, Array(3).fill(exerciseId));
  await db
    .insert(assignments)
    .values(tokens.map((_, nth) => ({ programId, patientId: patient(nth).sub, assignedBy: 'x' })));
  for (const [nth, id] of renderIds.entries()) await moveTo(db, id, nth === 2 ? 'transcoding' : 'ready');
  return { path: `/v1/programs/${programId}/readiness`, last: renderIds[2]! };
}

interface Answer {
  status: number | undefined;
  etag: string;
  text: AsyncIterable<string>;
}
type Ask = (path: string, headers: Record<string, string>) => Promise<Answer>;

/** Over a connection of one's own, and through Node's own client: two hundred of them cost the machine less than `fetch`. */
const over =
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
  expect([200, 304]).toContain(status);
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
    expect(saw).toBe(true);
    return Date.now();
  },
} satisfies Record<string, Kind>;
const kindOf = (nth: number) => (['poll', 'wait', 'stream', 'wait'] as const)[nth % 4]!;

/** Two hundred at once over these edges. */
function watchAll(asks: readonly ((nth: number) => Ask)[], path: string) {
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
    const ask = asks[Math.floor(nth / 4) % asks.length]!(nth);
    const authorization = `Bearer ${tokens[Math.floor(nth / 8) % PATIENTS]}`;
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
async function finishAsWorker({ db }: Pick<Database, 'db'>, renderId: string, announcer: Announcer): Promise<number> {
  expect(await markReady(db, { id: renderId, videoGuid: 'video-1', cause: 'webhook' })).toBeTruthy();
  announcer.changedSoon({ renders: [renderId] });
  return (await findRender(db, renderId))!.readyAt!.getTime();
}

/** How long after the commit the last of each kind knew. */
const latest = (seen: { ms: number; kind: string }[], committed: number) =>
  Object.fromEntries(
    Object.keys(KINDS).map((kind) => [
      kind,
      Math.max(...seen.filter((one) => one.kind === kind).map(({ ms }) => ms - committed)),
    ]),
  );

describe('two hundred who poll, wait and listen at two edge processes', () => {
  /** One programme, from when everybody watches until everybody knows; answers how long after the commit each kind did. */
  async function watchOne(before: () => Promise<void> = async () => {}) {
    const { path, last } = await almostReady(database, exercise);
    const watching = watchAll(edges, path);
    await watching.began;
    await before();
    const committed = await finishAsWorker(database, last, worker);
    return latest(await watching.all, committed);
  }
  // A process that has just been started compiles what it does for the first time: that round is not measured.
  beforeAll(async () => {
    await watchOne();
  });

  it('all know within a second of the last transition, made by a third', async () => {
    const after = await watchOne();
    expect(Math.max(...Object.values(after)), JSON.stringify(after)).toBeLessThan(HEARD_MS);
  });

  it('are told the truth while Redis is away, within three seconds', async () => {
    const after = await watchOne(() => redis.refuse()).finally(() => redis.pass());
    expect(Math.max(...Object.values(after)), JSON.stringify(after)).toBeLessThan(ALONE_MS);
  });
});

describe('two hundred at one edge', () => {
  it('ask Postgres no more than their ten patients and one programme do', async () => {
    const edge = await startEdge();
    let answers = 0;
    const ask: Ask = async (path, headers) => {
      answers += 1;
      const { status, headers: said, body } = await edge.app.request(path, { headers });
      const text =
        body?.pipeThrough(new TextDecoderStream()) ?? new ReadableStream<string>({ start: (c) => c.close() });
      return { status, etag: said.get('etag') ?? '', text };
    };
    try {
      await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
      const { path, last } = await almostReady(edge, (await anExercise(edge.db, { orgId: who.manager.org })).id);
      const started = performance.now();
      const statements = await statementsOf(edge, async () => {
        const watching = watchAll([() => ask], path);
        await watching.began;
        await waitFor(() => answers > 4 * POLLERS, { label: 'some rounds of polls' });
        await finishAsWorker(
          edge,
          last,
          createAnnouncer(edge.db, { ring: async (ids) => edge.deps.statuses.changed({ programs: ids }) }, silentLog),
        );
        await watching.all;
      });
      const seconds = (performance.now() - started) / 1_000;
      // Who sees it is asked again after three eighths of a second at the earliest, how it stands likewise, and once more
      // for each ring and for the end. Without sharing there would be two for each answer and each waiter's look.
      const most = Math.ceil(seconds / 0.375 + 2) * (PATIENTS + 2) + 20;
      expect(statements, `${answers} answers in ${seconds} s`).toBeLessThanOrEqual(most);
      expect(statements).toBeLessThan(answers / 2);
    } finally {
      await edge.close();
    }
  });
});
