import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../lib/db/client.ts';
import { exerciseRenders, organisations } from '../../../lib/db/schema/index.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { anExercise, aProgram } from '../../support/clinic.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { testRedis } from '../../support/redis.ts';
import { startScriptedMedia } from '../../support/scripted-media.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker } from '../../support/worker.ts';
import { people, problemOf, startEdge, type TestEdge, testEnv, tokenFor } from './fixture.ts';

const who = people();
const as = who.specialist;
const { startApp } = useAppProcesses({ timeoutMs: 60_000 });
const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

describe('an edge that is killed after its commit and before the queue knows', () => {
  let test: TestDatabase;
  let database: Database;
  beforeAll(async () => {
    test = await createTestDatabase();
    database = openDatabase(test.url, { max: 2 });
  });
  afterAll(async () => {
    await database.close();
    await test.drop();
  });

  it('has published all the same: the sweep of any worker queues it', { timeout: 90_000 }, async () => {
    const { db } = database;
    await db.insert(organisations).values({ id: who.manager.org, name: 'A' });
    const exercise = await anExercise(db, { orgId: who.manager.org });
    const programId = await aProgram(db, who.manager.org, [[{ exerciseId: exercise.id }]]);
    const { url: redisUrl, prefix } = testRedis();
    const proxy = await startTcpProxy(redisUrl);
    opened.push(proxy.close);
    const { child, ready } = await startApp(
      'edge',
      testEnv({ DATABASE_URL: test.url, REDIS_URL: proxy.url, REDIS_PREFIX: prefix }),
    );
    // Redis takes the command and says nothing: the moment between commit and mirror, held open.
    proxy.stall();
    const started = performance.now();
    const answer = await fetch(`${ready.url}/v1/programs/${programId}/publish`, {
      ...{ method: 'POST', headers: { authorization: `Bearer ${await tokenFor(as)}` } },
    });
    expect([answer.status, await answer.json()]).toMatchObject([202, { total: 1, queued: 1 }]);
    // A quarter of a second is what the mirror may take of it.
    expect(performance.now() - started).toBeLessThan(2_000);
    child.kill('SIGKILL');
    await child;
    const [row] = await db.select().from(exerciseRenders);
    expect(row).toMatchObject({ status: 'pending', dispatchedAt: null });

    const media = await startScriptedMedia();
    opened.push(media.close);
    const given = { databaseUrl: test.url, redisUrl, prefix, mediaUrl: media.url, mediaToken: media.token };
    const worker = startTestWorker(given);
    opened.push(worker.stop);
    await waitFor(async () => (await db.select().from(exerciseRenders))[0]?.status === 'transcoding', {
      ...{ label: 'the render to be baked', timeoutMs: 20_000 },
    });
    expect(media.calls).toHaveLength(1);
  });
});

describe('a publish that fails', () => {
  let edge: TestEdge;
  let exerciseId: string;
  beforeAll(async () => {
    edge = await startEdge();
    await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
    exerciseId = (await anExercise(edge.db, { orgId: who.manager.org })).id;
  });
  afterAll(() => edge.close());

  const nothingCameOfIt = async () => {
    expect(await edge.db.select().from(exerciseRenders)).toEqual([]);
    expect(await edge.deps.queues.renders.getJobCounts()).toMatchObject({ waiting: 0, prioritized: 0, delayed: 0 });
  };

  it('because an item cannot become a video leaves no job', async () => {
    const bare = await anExercise(edge.db, { orgId: who.manager.org, durationMs: null });
    const id = await aProgram(edge.db, who.manager.org, [[{ exerciseId }, { exerciseId: bare.id }]]);
    const problem = await problemOf(await edge.call('POST', `/v1/programs/${id}/publish`, { as }));
    expect(problem).toMatchObject({ code: 'not_publishable' });
    await nothingCameOfIt();
  });

  it('at its very commit leaves no job either: the queue is told after it, never before', async () => {
    await edge.db.execute(sql`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'no commit today'; end $$`);
    await edge.db.execute(sql`
      create constraint trigger refuse_commit after insert on exercise_renders
        deferrable initially deferred for each row execute function refuse()`);
    const id = await aProgram(edge.db, who.manager.org, [[{ exerciseId }]]);
    const response = await edge.call('POST', `/v1/programs/${id}/publish`, { as });
    expect(response.status).toBeGreaterThanOrEqual(500);
    await nothingCameOfIt();

    await edge.db.execute(sql`drop trigger refuse_commit on exercise_renders`);
    expect((await edge.call('POST', `/v1/programs/${id}/publish`, { as })).status).toBe(202);
    expect(await edge.deps.queues.renders.getJobCountByTypes('prioritized', 'waiting')).toBe(1);
  });
});
