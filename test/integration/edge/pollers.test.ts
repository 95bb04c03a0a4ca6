import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Announcer, createAnnouncer } from '../../../lib/announce.ts';
import { openStatusBell, type StatusBell } from '../../../lib/cache/status-cache.ts';
import { type Database, openDatabase } from '../../../lib/db/client.ts';
import { assignments, organisations } from '../../../lib/db/schema/index.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { anExercise } from '../../support/clinic.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { silentLog } from '../../support/log.ts';
import { type Ask, finishAsWorker, latest, over, PATIENTS, POLLERS, watchAll } from '../../support/pollers.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';
import { aPublishedProgram, moveTo, people, serve, startEdge, statementsOf, testEnv, tokenFor } from './fixture.ts';

const who = people();

/** Well before a wait of 25 s ends by itself. That it is a second is for `bench:pollers` to say, on a machine with nothing else to do. */
const HEARD_MS = 15_000;

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
  return { programId, path: `/v1/programs/${programId}/readiness`, last: renderIds[2]! };
}

describe('two hundred who poll, wait and listen at two edge processes', () => {
  /** One programme, from when everybody watches until everybody knows; answers how long after the commit each kind did. */
  async function watchOne(before: () => Promise<void> = async () => {}) {
    const { path, last } = await almostReady(database, exercise);
    const watching = watchAll(edges, path, tokens);
    await watching.began;
    await before();
    const committed = await finishAsWorker(database, last, worker);
    return latest(await watching.all, committed);
  }

  it('all hear of the last transition, made by a third, without waiting for an end of their waits', async () => {
    expect(Math.max(...Object.values(await watchOne()))).toBeLessThan(HEARD_MS);
  });

  it('do so while Redis is away, too', async () => {
    const after = await watchOne(() => redis.refuse()).finally(() => redis.pass());
    expect(Math.max(...Object.values(after))).toBeLessThan(HEARD_MS);
  });
});

describe('two hundred at one edge', () => {
  it('ask Postgres no more than their ten patients and one programme do', async () => {
    const edge = await startEdge();
    let answers = 0;
    const { url, close } = await serve(edge);

    /** For each who watches, over a connection of their own. */
    const asker = (): Ask => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      agents.push(agent);
      const ask = over(url, agent);
      return (path, headers) => {
        answers += 1;
        return ask(path, headers);
      };
    };
    try {
      await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
      const { path, last } = await almostReady(edge, (await anExercise(edge.db, { orgId: who.manager.org })).id);
      const started = performance.now();
      const statements = await statementsOf(edge, async () => {
        const watching = watchAll([asker], path, tokens);
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
      // Who sees it is asked for all together, twenty times a second at most, and how it stands and how fast bakes are after
      // a quarter of a second at the earliest; once more of each for the ring and for the end. Without sharing there
      // would be two for each answer and each waiter's look.
      const most = Math.ceil(seconds / 0.05 + 2) + 2 * Math.ceil(seconds / 0.25 + 2) + 20;
      expect(statements, `${answers} answers in ${seconds} s`).toBeLessThanOrEqual(most);
      expect(statements).toBeLessThan(answers / 2);
    } finally {
      await close();
      await edge.close();
    }
  });

  it('who are as many patients ask Postgres no more than one does', async () => {
    const edge = await startEdge();
    try {
      await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
      const { path, programId } = await almostReady(edge, (await anExercise(edge.db, { orgId: who.manager.org })).id);
      const many = Array.from({ length: POLLERS }, (_, nth) => patient(PATIENTS + nth));
      await edge.db.insert(assignments).values(many.map(({ sub }) => ({ programId, patientId: sub, assignedBy: 'x' })));
      const headers = await Promise.all(many.map(async (one) => ({ authorization: `Bearer ${await tokenFor(one)}` })));
      const until = performance.now() + 2_000;
      let answers = 0;
      const statements = await statementsOf(edge, () =>
        Promise.all(
          headers.map(async (mine) => {
            for (; performance.now() < until; answers += 1) {
              expect((await edge.app.request(path, { headers: mine })).status).toBe(200);
              await new Promise((resolve) => setTimeout(resolve, 250));
            }
          }),
        ),
      );
      const seconds = (performance.now() - until + 2_000) / 1_000;
      const most = Math.ceil(seconds / 0.05 + 2) + 2 * Math.ceil(seconds / 0.375 + 2);
      expect(statements, `${answers} answers in ${seconds} s`).toBeLessThanOrEqual(most);
    } finally {
      await edge.close();
    }
  });
});
