import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../../lib/db/client.ts';
import { exerciseRenders, organisations } from '../../../lib/db/schema/index.ts';
import { anExercise, aProgram } from '../../support/clinic.ts';
import { testRedis } from '../../support/redis.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { aPublishedProgram, DEAD, moveTo, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
const as = who.specialist;
let edge: TestEdge;
let exercise: string;

async function seed(target: TestEdge): Promise<string> {
  await target.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  return (await anExercise(target.db, { orgId: who.manager.org, name: 'Squat' })).id;
}

beforeAll(async () => {
  edge = await startEdge({ BUNNY_CDN_TOKEN_KEY: 'the-token-key-of-the-zone' });
  exercise = await seed(edge);
});
afterAll(() => edge.close());

async function waitingForLocks(db: Db): Promise<number> {
  const { rows } = await db.execute(sql`select count(*)::int as waiting from pg_locks l
    join pg_stat_activity a on a.pid = l.pid where a.datname = current_database() and not l.granted`);
  return (rows[0] as { waiting: number }).waiting;
}

describe('publishing', () => {
  it('answers 202 with counts and puts the renders into the queue', async () => {
    const items = [{ exerciseId: exercise }, { exerciseId: exercise, dose: { reps: 5 } }, { exerciseId: exercise }];
    const id = await aProgram(edge.db, who.manager.org, [items]);
    const response = await edge.call('POST', `/v1/programs/${id}/publish`, { as });
    expect(response.status).toBe(202);
    expect(await response.json()).toEqual({ total: 2, ready: 0, queued: 2, inProgress: 0, failed: 0 });
    expect(await edge.deps.queues.renders.getJobCountByTypes('prioritized', 'waiting')).toBe(2);
    const rows = await edge.db.select().from(exerciseRenders);
    expect(rows.every((row) => row.dispatchedAt !== null && row.fairKey === as.sub)).toBe(true);
    const again = await edge.call('POST', `/v1/programs/${id}/publish`, { as });
    expect(await again.json()).toMatchObject({ total: 2, queued: 2 });
    expect(await (await edge.call('GET', `/v1/programs/${id}`, { as })).json()).toMatchObject({ status: 'published' });
  });

  it('names each item that cannot become a video', async () => {
    const bare = await anExercise(edge.db, { orgId: who.manager.org, durationMs: null });
    const id = await aProgram(edge.db, who.manager.org, [[{ exerciseId: exercise }, { exerciseId: bare.id }]]);
    const problem = await problemOf(await edge.call('POST', `/v1/programs/${id}/publish`, { as }));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'not_publishable', errors: [{ code: 'source_missing' }] });
    expect(await (await edge.call('GET', `/v1/programs/${id}`, { as })).json()).toMatchObject({ status: 'draft' });
  });

  it('refuses a programme without items', async () => {
    const id = await aProgram(edge.db, who.manager.org, []);
    const problem = await problemOf(await edge.call('POST', `/v1/programs/${id}/publish`, { as }));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'not_publishable' });
  });

  it('leaves Postgres to others while one specialist publishes many programmes at once', async () => {
    const items = [[{ exerciseId: exercise }]];
    const ids = await Promise.all(Array.from({ length: 6 }, () => aProgram(edge.db, who.manager.org, items)));
    const holder = await edge.deps.database.connect();
    try {
      await holder.query(`select pg_advisory_lock(hashtextextended('fair:${as.sub}', 0))`);
      const publishes = ids.map((id) => edge.call('POST', `/v1/programs/${id}/publish`, { as }));
      await expect.poll(() => waitingForLocks(edge.db)).toBe(1);
      expect((await edge.call('GET', `/v1/programs/${ids[0]}`, { as: who.manager })).status).toBe(200);
      expect(await waitingForLocks(edge.db)).toBe(1);
      await holder.query('select pg_advisory_unlock_all()');
      for (const response of await Promise.all(publishes)) expect(response.status).toBe(202);
    } finally {
      holder.release(true);
    }
  });

  it('answers within a second where Redis is down', async () => {
    const down = await startEdge({ REDIS_URL: `redis://${DEAD}` });
    try {
      const id = await aProgram(down.db, who.manager.org, [[{ exerciseId: await seed(down) }]]);
      const start = performance.now();
      const response = await down.call('POST', `/v1/programs/${id}/publish`, { as });
      expect(await response.json()).toMatchObject({ total: 1, queued: 1 });
      expect(performance.now() - start).toBeLessThan(1000);
      const [row] = await down.db.select().from(exerciseRenders);
      expect(row).toMatchObject({ status: 'pending', dispatchedAt: null });
    } finally {
      await down.close();
    }
  });

  it('answers within a second where Redis hangs, and mirrors once it moves again', async () => {
    const proxy = await startTcpProxy(testRedis().url);
    const hung = await startEdge({ REDIS_URL: proxy.url });
    try {
      const id = await aProgram(hung.db, who.manager.org, [[{ exerciseId: await seed(hung) }]]);
      await hung.deps.queues.renders.waitUntilReady();
      proxy.stall();
      const start = performance.now();
      expect((await hung.call('POST', `/v1/programs/${id}/publish`, { as })).status).toBe(202);
      expect(performance.now() - start).toBeLessThan(1000);
      await proxy.pass();
      await expect.poll(() => hung.deps.queues.renders.count()).toBe(1);
    } finally {
      await hung.close();
      await proxy.close();
    }
  });
});

describe('assigning after the publish', () => {
  it('puts what the patient waits for before the rest of its specialist, in the queue too', async () => {
    const publish = async (count: number, from: number) => {
      const items = Array.from({ length: count }, (_, n) => ({
        exerciseId: exercise,
        dose: { sets: 9, reps: from + n },
      }));
      const id = await aProgram(edge.db, who.manager.org, [items]);
      expect((await edge.call('POST', `/v1/programs/${id}/publish`, { as: who.manager })).status).toBe(202);
      return id;
    };
    const first = await publish(3, 1);
    const second = await publish(1, 10);
    const jobOf = async (programId: string) => {
      const response = await edge.call('GET', `/v1/programs/${programId}/renders`, { as });
      const { items } = (await response.json()) as { items: { recipeHash: string }[] };
      return Promise.all(items.map(async ({ recipeHash }) => (await edge.deps.queues.renders.getJob(recipeHash))!));
    };
    const priorities = async (programId: string) => (await jobOf(programId)).map((job) => job.priority);
    const [before, others] = [(await priorities(second))[0]!, await priorities(first)];
    expect(before).toBeGreaterThan(Math.max(...others));
    const json = { patientId: 'patient-a' };
    expect((await edge.call('POST', `/v1/programs/${second}/assignments`, { as, json })).status).toBe(201);
    const [after, othersAfter] = [(await priorities(second))[0]!, await priorities(first)];
    expect(after).toBeLessThan(Math.min(...others));
    expect(othersAfter.every((priority) => priority > after)).toBe(true);
  });

  it('answers in time where Redis is down', async () => {
    const down = await startEdge({ REDIS_URL: `redis://${DEAD}` });
    try {
      const id = await aProgram(down.db, who.manager.org, [[{ exerciseId: await seed(down) }]]);
      await down.call('POST', `/v1/programs/${id}/publish`, { as });
      const start = performance.now();
      const json = { patientId: 'patient-a' };
      expect((await down.call('POST', `/v1/programs/${id}/assignments`, { as, json })).status).toBe(201);
      expect(performance.now() - start).toBeLessThan(1000);
      expect(await down.db.select().from(exerciseRenders)).toMatchObject([{ urgent: true }]);
    } finally {
      await down.close();
    }
  });

  it('lets the queue hold no more than its bound, whatever is published', async () => {
    const small = await startEdge({ RENDER_QUEUE_MAX_MIRRORED: '2' });
    try {
      const exerciseId = await seed(small);
      const items = Array.from({ length: 5 }, (_, n) => ({ exerciseId, dose: { reps: n + 1 } }));
      const id = await aProgram(small.db, who.manager.org, [items]);
      const response = await small.call('POST', `/v1/programs/${id}/publish`, { as });
      expect(await response.json()).toMatchObject({ total: 5, queued: 5 });
      expect(await small.deps.queues.renders.count()).toBe(2);
    } finally {
      await small.close();
    }
  });
});

describe('the renders of a programme', () => {
  it('tell state, progress and cause, and where to play only what is ready', async () => {
    const { programId, renderIds } = await aPublishedProgram(edge.db, who.manager.org, Array(5).fill(exercise));
    const states = ['pending', 'rendering', 'transcoding', 'ready', 'failed'] as const;
    for (const [i, status] of states.entries()) await moveTo(edge.db, renderIds[i]!, status);
    const response = await edge.call('GET', `/v1/programs/${programId}/renders`, { as: who.manager });
    const { items } = (await response.json()) as { items: Record<string, unknown>[] };
    expect(items).toMatchObject([
      { status: 'pending', exerciseName: 'Squat', progress: null, error: null },
      { status: 'rendering', attempts: 1, maxAttempts: 5, progress: { stage: 'segments', percent: 40 } },
      { status: 'transcoding', progress: null },
      { status: 'ready', manifestUrl: 'https://zone.test/manifest.json', durationMs: 10_000 },
      { status: 'failed', error: { code: 'ffmpeg_failed', sentence: 'The video could not be composed.' } },
    ]);
    for (const item of items) {
      if (item.status === 'ready') continue;
      expect(item).toMatchObject({ hlsUrl: null, manifestUrl: null });
    }
    const expires = String(Math.floor(Date.now() / 1000)).slice(0, 4);
    expect(items[3]?.hlsUrl).toMatch(
      new RegExp(
        `^https://vz-test\\.b-cdn\\.net/bcdn_token=HS256-[\\w-]{43}&token_path=%2Fvideo-1%2F&expires=${expires}\\d{6}/video-1/playlist\\.m3u8$`,
      ),
    );
  });

  it('are none before publish', async () => {
    const id = await aProgram(edge.db, who.manager.org, [[{ exerciseId: exercise }]]);
    expect(await (await edge.call('GET', `/v1/programs/${id}/renders`, { as })).json()).toEqual({ items: [] });
  });

  it('show the cause of the last attempt while the next one is waited for', async () => {
    const { programId, renderIds } = await aPublishedProgram(edge.db, who.manager.org, [exercise]);
    const error = { errorCode: 'media_unavailable', errorMessage: 'The media service could not be reached.' };
    await moveTo(edge.db, renderIds[0]!, 'pending');
    await edge.db
      .update(exerciseRenders)
      .set({ ...error, attempts: 2 })
      .where(eq(exerciseRenders.id, renderIds[0]!));
    const response = await edge.call('GET', `/v1/programs/${programId}/renders`, { as });
    expect(await response.json()).toMatchObject({
      items: [{ status: 'pending', attempts: 2, error: { code: 'media_unavailable' } }],
    });
  });
});
