import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { type QueuedRender, renderJobId } from '../../../lib/domain/render-states.ts';
import { done, later } from '../../../lib/queue/jobs.ts';
import { announceWebhook, createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues, type Queues } from '../../../lib/queue/queues.ts';
import { type JobRunner, type RunJobsOptions, runJobs } from '../../../lib/queue/run-jobs.ts';
import { shaOf } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

function setup(redisUrl?: string) {
  const { url, prefix } = testRedis();
  const connection = { redisUrl: redisUrl ?? url, prefix };
  const queues = openQueues(connection, silentLog);
  opened.push(queues);
  const stamped: string[] = [];
  const mirror = createMirror({
    queue: queues.renders,
    markDispatched: async (renders) => {
      stamped.push(...renders.map(({ id }) => id));
    },
    log: silentLog,
    deadlineMs: 1_000,
  });
  return { connection, queues, mirror, stamped };
}

const aRender = (change: Partial<QueuedRender> = {}): QueuedRender => {
  const id = randomUUID();
  return { id, recipeHash: shaOf(id), generation: 0, fairTag: 1, urgent: false, ...change };
};

const jobIds = async (queues: Queues) => (await queues.renders.getJobs()).map((job) => job.id).sort();

function consume(
  connection: { redisUrl: string; prefix: string },
  handler: RunJobsOptions<'render'>['handler'],
  concurrency = 1,
): JobRunner {
  const runner = runJobs({ ...connection, kind: 'render', concurrency, handler, log: silentLog });
  opened.push({ close: () => runner.close(2_000) });
  return runner;
}

describe('mirror', () => {
  it('adds one job per render, named by its recipe hash and carrying ids only', async () => {
    const { queues, mirror, stamped } = setup();
    const renders = [aRender(), aRender({ generation: 2 })];
    expect(await mirror.dispatch(renders)).toBe(true);
    expect(await mirror.dispatch(renders)).toBe(true);
    expect(await jobIds(queues)).toEqual(renders.map((r) => renderJobId(r.recipeHash, r.generation)).sort());
    const job = await queues.renders.getJob(renders[0]!.recipeHash);
    expect(job?.data).toEqual({ renderId: renders[0]!.id, generation: 0, recipeHash: renders[0]!.recipeHash });
    expect(new Set(stamped)).toEqual(new Set(renders.map(({ id }) => id)));
  });

  it('gives up at its deadline where Redis is away, stamps nothing and does not throw', async () => {
    const { mirror, stamped } = setup('redis://127.0.0.1:1');
    const started = performance.now();
    expect(await mirror.dispatch([aRender()])).toBe(false);
    expect(performance.now() - started).toBeLessThan(1_500);
    expect(stamped).toEqual([]);
  });

  it('frees an id that a finished job holds, which would swallow a plain add', async () => {
    const { connection, queues, mirror } = setup();
    const render = aRender();
    let runs = 0;
    consume(connection, async () => {
      runs += 1;
      return done('no-op');
    });
    await mirror.dispatch([render]);
    await waitFor(async () => (await queues.renders.getJobState(render.recipeHash)) === 'completed', {
      label: 'the job to complete',
    });
    await mirror.dispatch([render]);
    expect(runs).toBe(1);
    await mirror.redispatch([render]);
    await waitFor(() => runs === 2, { label: 'the job to run again' });
  });

  it('clears a ghost: a job hash that is in no list', async () => {
    const { connection, queues, mirror } = setup();
    const render = aRender();
    const redis = new Redis(connection.redisUrl);
    await redis.hset(`${connection.prefix}:renders:${render.recipeHash}`, 'name', 'render');
    redis.disconnect();
    await mirror.redispatch([render]);
    expect(await queues.renders.getJobState(render.recipeHash)).toBe('prioritized');
  });

  it('leaves a job alone that a worker is at', async () => {
    const { connection, mirror } = setup();
    const render = aRender();
    let runs = 0;
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    consume(
      connection,
      async () => {
        runs += 1;
        await finished;
        return done('ok');
      },
      2,
    );
    await mirror.dispatch([render]);
    await waitFor(() => runs === 1, { label: 'the job to start' });
    await mirror.redispatch([render]);
    finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(runs).toBe(1);
  });

  it('has the queue take the lowest tag first, and an urgent render before all', async () => {
    const { connection, mirror } = setup();
    const renders = [
      aRender({ fairTag: 30 }),
      aRender({ fairTag: 10 }),
      aRender({ fairTag: 99, urgent: true }),
      aRender({ fairTag: 20 }),
    ];
    await mirror.dispatch(renders);
    const order: string[] = [];
    consume(connection, async ({ renderId }) => {
      order.push(renderId);
      return done('ok');
    });
    await waitFor(() => order.length === 4, { label: 'all four jobs' });
    expect(order).toEqual([renders[2], renders[1], renders[3], renders[0]].map((r) => r!.id));
  });
});

describe('jobs', () => {
  it('asked to run later come back, without being counted as failed', async () => {
    const { connection, queues, mirror } = setup();
    const render = aRender();
    let runs = 0;
    consume(connection, async () => {
      runs += 1;
      return runs < 3 ? later('not yet', 20) : done('now');
    });
    await mirror.dispatch([render]);
    await waitFor(async () => (await queues.renders.getJobState(render.recipeHash)) === 'completed', {
      label: 'the third run',
    });
    const job = await queues.renders.getJob(render.recipeHash);
    expect(job).toMatchObject({ returnvalue: 'now', attemptsMade: 1 });
  });

  it('start no faster than the limit, over all workers of the queue', async () => {
    const { connection, mirror } = setup();
    const started: number[] = [];
    for (let worker = 0; worker < 2; worker++) {
      const runner = runJobs({
        ...connection,
        kind: 'render',
        concurrency: 5,
        limiter: { max: 2, duration: 400 },
        handler: async () => {
          started.push(performance.now());
          return done('ok');
        },
        log: silentLog,
      });
      opened.push({ close: () => runner.close(2_000) });
    }
    await mirror.dispatch(Array.from({ length: 5 }, () => aRender()));
    await waitFor(() => started.length === 5, { label: 'all five jobs' });
    // Two windows must have passed before the fifth; a tenth is left for the clocks of Redis and this process.
    expect(started[4]! - started[0]!).toBeGreaterThan(720);
  });

  it('under way are told of a shutdown and waited for', async () => {
    const { connection, mirror } = setup();
    let reason: unknown;
    let started = false;
    let settled = false;
    const runner = consume(connection, async (_, signal) => {
      started = true;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      reason = signal.reason;
      await new Promise((resolve) => setImmediate(resolve));
      settled = true;
      return later('shutdown', 0);
    });
    await mirror.dispatch([aRender()]);
    await waitFor(() => started, { label: 'the job to start' });
    await runner.close(5_000);
    expect([reason, settled]).toEqual(['shutdown', true]);
  });

  it('fetched while a runner is closing go back without having begun', async () => {
    const { connection, queues, mirror } = setup();
    const begun: string[] = [];
    let late = 0;
    let closing = false;
    const runner = consume(
      connection,
      async ({ renderId }, signal) => {
        if (closing) late += 1;
        begun.push(renderId);
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        return later('shutdown', 0);
      },
      4,
    );
    await mirror.dispatch([aRender()]);
    await waitFor(() => begun.length > 0, { label: 'the first job' });
    const adding = mirror.dispatch(Array.from({ length: 30 }, () => aRender()));
    closing = true;
    await Promise.all([runner.close(5_000), adding]);
    expect(late).toBe(0);
    expect(await queues.renders.getJobCountByTypes('active')).toBe(0);
  });

  it('do not keep a runner from closing in time where Redis is unreachable', async () => {
    const runner = consume({ redisUrl: 'redis://127.0.0.1:1', prefix: 'none' }, async () => done('never'));
    const started = performance.now();
    await runner.close(300);
    expect(performance.now() - started).toBeLessThan(1_500);
  });

  it('with a payload of another shape fail without reaching the handler', async () => {
    const { connection, queues } = setup();
    let reached = false;
    consume(connection, async () => {
      reached = true;
      return done('ok');
    });
    await queues.renders.add('render', { renderId: 'not-a-uuid' }, { jobId: 'odd-job' });
    await waitFor(async () => (await queues.renders.getJobState('odd-job')) === 'failed', { label: 'the job to fail' });
    expect(reached).toBe(false);
  });

  it('for a stored webhook are announced at once, and best effort only', async () => {
    const { queues } = setup();
    const eventId = randomUUID();
    await announceWebhook(queues.webhooks, eventId, silentLog);
    expect((await queues.webhooks.getJob(`webhook-${eventId}`))?.data).toEqual({ eventId });
    const away = setup('redis://127.0.0.1:1');
    await announceWebhook(away.queues.webhooks, eventId, silentLog, 200);
  });
});
