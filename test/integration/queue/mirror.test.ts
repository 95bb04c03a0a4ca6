import { Worker } from 'bullmq';
import { eq, sql } from 'drizzle-orm';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import type { Render } from '../../../lib/db/move.ts';
import { claimRender, handBack } from '../../../lib/db/renders.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { BASE_STEP } from '../../../lib/domain/fair-order.ts';
import { renderJobId } from '../../../lib/domain/render-states.ts';
import { done } from '../../../lib/queue/jobs.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { runJobs } from '../../../lib/queue/run-jobs.ts';
import { silentLog } from '../../support/log.ts';
import { startPrivateRedis, testRedis } from '../../support/redis.ts';
import { insertRenders } from '../../support/renders.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';

const database = useTestDatabase();
const opened: (() => Promise<unknown>)[] = [];
beforeEach(() => database.db.execute(sql`truncate exercise_renders cascade`));
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

const STALE_MS = 60_000;

function setup({ redisUrl, max = 100 }: { redisUrl?: string; max?: number } = {}) {
  const { url, prefix } = testRedis();
  const connection = { redisUrl: redisUrl ?? url, prefix };
  const queues = openQueues(connection, silentLog);
  opened.push(queues.close);
  const rows = mirrorRows(database.db, max);
  const mirror = createMirror({ queue: queues.renders, rows, log: silentLog, deadlineMs: 1_000 });
  return { connection, queue: queues.renders, rows, mirror, sweep: () => mirror.sweep({ staleMs: STALE_MS }) };
}

type Setup = ReturnType<typeof setup>;

const jobIdOf = (render: Pick<Render, 'recipeHash' | 'generation'>) =>
  renderJobId(render.recipeHash, render.generation);
const inQueue = async ({ queue }: Setup) =>
  (await queue.getJobs(['prioritized', 'waiting', 'delayed'])).map((job) => job.id).sort();
const priorityIn = async ({ queue }: Setup, render: Render) => (await queue.getJob(jobIdOf(render)))?.priority;
const rounds = (from: number, to: number, more: Partial<Render> = {}) =>
  Array.from({ length: to - from + 1 }, (_, nth) => ({ fairTag: from + nth, ...more }));
const reload = async ({ id }: Pick<Render, 'id'>) =>
  (await database.db.select().from(exerciseRenders).where(eq(exerciseRenders.id, id)))[0]!;
const change = (render: Render, set: Partial<Render>) =>
  database.db.update(exerciseRenders).set(set).where(eq(exerciseRenders.id, render.id));
const claim = (render: Render, token = '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc') =>
  claimRender(database.db, { id: render.id, generation: render.generation, token, by: 'worker-1', leaseMs: 60_000 });

/** Runs the jobs in the order in which the queue hands them out. */
function consume({ connection }: Setup): string[] {
  const order: string[] = [];
  const runner = runJobs({
    ...connection,
    kind: 'render',
    concurrency: 1,
    handler: async ({ renderId }) => {
      order.push(renderId);
      return done('ok');
    },
    log: silentLog,
  });
  opened.push(() => runner.close(2_000));
  return order;
}

describe('after a commit the mirror', () => {
  it('adds one job per render, named by recipe hash and generation and carrying ids only, and stamps the row', async () => {
    const test = setup();
    const renders = await insertRenders(database.db, [{}, { generation: 2 }]);
    expect(await test.mirror.dispatch(renders)).toBe(true);
    expect(await test.mirror.dispatch(renders)).toBe(true);
    expect(await inQueue(test)).toEqual(renders.map(jobIdOf).sort());
    const [{ id: renderId, recipeHash }] = renders as [Render];
    expect((await test.queue.getJob(recipeHash))?.data).toEqual({ renderId, generation: 0, recipeHash });
    const row = await reload({ id: renderId });
    expect(row.dispatchedAt).not.toBeNull();
    expect(row.mirroredPriority).toBe(await priorityIn(test, row));
  });

  it('gives up at its deadline where Redis is away, stamps nothing and does not throw', async () => {
    const { mirror } = setup({ redisUrl: 'redis://127.0.0.1:1' });
    const renders = await insertRenders(database.db, [{}]);
    const started = performance.now();
    expect(await mirror.dispatch(renders)).toBe(false);
    expect(performance.now() - started).toBeLessThan(1_500);
    expect(await reload(renders[0]!)).toMatchObject({ dispatchedAt: null, mirroredPriority: null });
  });

  it('has the queue go by rounds, inside a round take what is urgent first, and equals as they came', async () => {
    const test = setup();
    const renders = await insertRenders(database.db, [
      { fairTag: 3 },
      { fairTag: 2, fairKey: 'a' },
      { fairTag: 2, fairKey: 'b' },
      { fairTag: 2, fairKey: 'c', urgent: true },
      { fairTag: 4, urgent: true },
      { fairTag: 1 },
    ]);
    await test.mirror.dispatch(renders);
    const order = consume(test);
    await waitFor(() => order.length === renders.length, { label: 'all jobs' });
    expect(order).toEqual([5, 3, 1, 2, 0, 4].map((nth) => renders[nth]!.id));
  });

  it('adds only what belongs to the first that are due', async () => {
    const test = setup({ max: 3 });
    const renders = await insertRenders(database.db, rounds(1, 5));
    await change(renders[1]!, { notBefore: new Date(Date.now() + 60_000) });
    await test.mirror.dispatch(renders.slice(1));
    expect(await inQueue(test)).toEqual([renders[2]!, renders[3]!].map(jobIdOf).sort());
    expect(await reload(renders[4]!)).toMatchObject({ dispatchedAt: null });
  });

  it('gives a job that is there already its new priority', async () => {
    const test = setup();
    const renders = await insertRenders(database.db, rounds(1, 5));
    await test.mirror.dispatch(renders);
    await change(renders[4]!, { fairTag: 1, urgent: true });
    await test.mirror.dispatch([renders[4]!]);
    const bumped = await reload(renders[4]!);
    expect(await priorityIn(test, bumped)).toBe(3);
    expect(bumped.mirroredPriority).toBe(3);
    const order = consume(test);
    await waitFor(() => order.length === 5, { label: 'all jobs' });
    expect(order[0]).toBe(bumped.id);
  });
});

describe('the sweep of the mirror', () => {
  it('ends a pause, of which Postgres knows nothing and nobody would find the reason', async () => {
    const test = setup();
    await test.queue.pause();
    await test.sweep();
    expect(await test.queue.isPaused()).toBe(false);
  });

  it('adds what was never mirrored, in order, up to the limit', async () => {
    const test = setup({ max: 4 });
    const renders = await insertRenders(database.db, rounds(1, 10).reverse());
    expect(await test.sweep()).toBe(4);
    expect(await inQueue(test)).toEqual(renders.slice(-4).map(jobIdOf).sort());
    expect(await test.sweep()).toBe(0);
  });

  it('takes out what newcomers with earlier rounds have pushed behind the limit', async () => {
    const test = setup({ max: 4 });
    const old = await insertRenders(database.db, rounds(10, 13));
    await test.sweep();
    const young = await insertRenders(database.db, rounds(1, 3, { fairKey: 'newcomer' }));
    await test.mirror.dispatch(young);
    await test.sweep();
    expect(await inQueue(test)).toEqual([...young, old[0]!].map(jobIdOf).sort());
    for (const render of old.slice(1)) {
      expect(await reload(render)).toMatchObject({ dispatchedAt: null, mirroredPriority: null });
    }
  });

  it('adds a job again that was taken out just before a crash, when it belongs to the first once more', async () => {
    const test = setup({ max: 2 });
    const renders = await insertRenders(database.db, rounds(1, 2));
    await test.sweep();
    await test.queue.remove(jobIdOf(renders[1]!));
    expect((await reload(renders[1]!)).dispatchedAt).not.toBeNull();
    await test.sweep();
    expect(await inQueue(test)).toEqual(renders.map(jobIdOf).sort());
  });

  it('leaves a job in the queue that a worker has in hand, however late its round', async () => {
    const test = setup({ max: 1 });
    const [late] = (await insertRenders(database.db, [{ fairTag: 9 }])) as [Render];
    await test.sweep();
    let finish = () => {};
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let begun = false;
    const runner = runJobs({
      ...test.connection,
      kind: 'render',
      concurrency: 1,
      handler: async () => {
        begun = true;
        await held;
        return done('ok');
      },
      log: silentLog,
    });
    opened.push(() => runner.close(2_000));
    await waitFor(() => begun, { label: 'the job to start' });
    await insertRenders(database.db, [{ fairTag: 1 }]);
    await test.sweep();
    expect(await test.queue.getJobState(jobIdOf(late))).toBe('active');
    expect((await reload(late)).dispatchedAt).not.toBeNull();
    finish();
  });

  it('replaces the job of a worker that died, without waiting for BullMQ to find it stalled', async () => {
    const test = setup();
    const renders = (await insertRenders(database.db, rounds(1, 2))) as [Render, Render];
    await test.sweep();
    const worker = new Worker('renders', null, {
      connection: { url: test.connection.redisUrl },
      prefix: test.connection.prefix,
      autorun: false,
    });
    opened.push(() => worker.close(true));
    const [dead, living] = [await worker.getNextJob('one'), await worker.getNextJob('other')];
    expect([dead?.id, living?.id]).toEqual(renders.map(jobIdOf));
    const redis = new Redis(test.connection.redisUrl);
    await redis.del(`${test.queue.toKey(dead?.id ?? '')}:lock`);
    redis.disconnect();
    for (const render of renders) await change(render, { dispatchedAt: null });
    await test.sweep();
    expect(await Promise.all(renders.map((render) => test.queue.getJobState(jobIdOf(render))))).toEqual([
      'prioritized',
      'active',
    ]);
  });

  it('frees an id that a finished job holds, which would swallow a plain add', async () => {
    const test = setup();
    const [render] = (await insertRenders(database.db, [{}])) as [Render];
    const order = consume(test);
    await test.mirror.dispatch([render]);
    await waitFor(async () => (await test.queue.getJobState(jobIdOf(render))) === 'completed', {
      label: 'the job to end',
    });
    await change(render, { dispatchedAt: null });
    await test.sweep();
    await waitFor(() => order.length === 2, { label: 'the job to run again' });
  });

  it('clears a ghost: a job hash that is in no list', async () => {
    const test = setup();
    const [render] = (await insertRenders(database.db, [{}])) as [Render];
    const redis = new Redis(test.connection.redisUrl);
    await redis.hset(`${test.connection.prefix}:renders:${render.recipeHash}`, 'name', 'render');
    redis.disconnect();
    await test.sweep();
    expect(await test.queue.getJobState(jobIdOf(render))).toBe('prioritized');
  });

  it('finds a job that vanished beside others when its row is stale', async () => {
    const test = setup();
    const renders = await insertRenders(database.db, rounds(1, 3));
    await test.sweep();
    // As many jobs as rows: one of another render hides the loss.
    await test.queue.remove(jobIdOf(renders[1]!));
    await test.queue.add('render', {}, { jobId: 'another', priority: 9 });
    await test.sweep();
    expect(await test.queue.getJobState(jobIdOf(renders[1]!))).toBe('unknown');
    await change(renders[1]!, { dispatchedAt: new Date(Date.now() - 2 * STALE_MS) });
    await test.sweep();
    expect(await test.queue.getJobState(jobIdOf(renders[1]!))).toBe('prioritized');
  });

  it('corrects priorities after a crash between a bump and telling the queue', async () => {
    const test = setup();
    const renders = await insertRenders(database.db, rounds(1, 3));
    await test.sweep();
    await change(renders[2]!, { fairTag: 1, urgent: true });
    await change(renders[0]!, { fairTag: 3 });
    expect(await test.sweep()).toBe(2);
    const [first, , last] = await Promise.all(renders.map(reload));
    expect([await priorityIn(test, last!), last!.mirroredPriority]).toEqual([3, 3]);
    expect([await priorityIn(test, first!), first!.mirroredPriority]).toEqual([8, 8]);
  });

  it('counts priorities from a new base when the clock has run past it, so that none wraps or sticks to the end', async () => {
    const test = setup();
    const before = await insertRenders(database.db, rounds(BASE_STEP - 1, BASE_STEP + 1));
    await test.sweep();
    expect(await priorityIn(test, before[0]!)).toBe(2 * BASE_STEP);
    await claim(before[0]!);
    await claim(before[1]!);
    const [newcomer] = (await insertRenders(database.db, [{ fairTag: BASE_STEP, fairKey: 'newcomer' }])) as [Render];
    await test.sweep();
    expect(await priorityIn(test, newcomer)).toBe(2);
    expect(await priorityIn(test, before[2]!)).toBe(4);
  });

  it('tells the queue again what two at once have told it', async () => {
    const test = setup();
    const [render] = (await insertRenders(database.db, [{}])) as [Render];
    const seen = await test.rows.changes([render.id]);
    await test.mirror.dispatch([render]);
    await test.rows.markDispatched(seen);
    expect((await reload(render)).mirroredPriority).toBeNull();
    await test.sweep();
    expect((await reload(render)).mirroredPriority).toBe(4);
  });

  it('holds no more waiting retries than renders that are due, and takes them up again in time', async () => {
    const test = setup({ max: 2 });
    const renders = await insertRenders(database.db, rounds(1, 5));
    const token = '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc';
    for (const [nth, render] of renders.entries()) {
      await claim(render, token);
      await handBack(database.db, { id: render.id, token }, { cause: 'media_busy', delayMs: 60_000 + nth * 1_000 });
      await test.queue.add('render', {}, { jobId: jobIdOf(render), delay: 60_000 + nth * 1_000, priority: 2 });
    }
    await test.sweep();
    expect(await inQueue(test)).toEqual(renders.slice(0, 2).map(jobIdOf).sort());
    await change(renders[4]!, { notBefore: new Date(Date.now() - 1) });
    await test.sweep();
    expect(await test.queue.getJobState(jobIdOf(renders[4]!))).toBe('prioritized');
  });

  it('throws within its deadline where Redis is away', async () => {
    const { sweep } = setup({ redisUrl: 'redis://127.0.0.1:1' });
    await insertRenders(database.db, [{}]);
    const started = performance.now();
    await expect(sweep()).rejects.toThrow();
    expect(performance.now() - started).toBeLessThan(1_500);
  });

  it('refills a flushed Redis at once, with the right priorities, and the rate of all workers stays limited', async () => {
    const redis = await startPrivateRedis();
    opened.push(redis.stop);
    const test = setup({ redisUrl: redis.url });
    const renders = await insertRenders(database.db, rounds(1, 6).reverse());
    await test.sweep();
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
    const started: { id: string; at: number }[] = [];
    for (let worker = 0; worker < 2; worker++) {
      const runner = runJobs({
        ...test.connection,
        kind: 'render',
        concurrency: 1,
        limiter: { max: 2, duration: 400 },
        handler: async ({ renderId }) => {
          started.push({ id: renderId, at: performance.now() });
          return done('ok');
        },
        log: silentLog,
      });
      opened.push(() => runner.close(2_000));
    }
    expect(await test.sweep()).toBe(6);
    await waitFor(() => started.length === 6, { label: 'all jobs' });
    // Of the two that start together, either may be told first.
    const pairs = (ids: string[]) => [0, 2, 4].map((at) => ids.slice(at, at + 2).sort());
    expect(pairs(started.map(({ id }) => id))).toEqual(pairs(renders.map(({ id }) => id).reverse()));
    // Two windows must have passed before the fifth; a tenth is left for the clocks of Redis and this process.
    expect(started[4]!.at - started[0]!.at).toBeGreaterThan(720);
  });
});
