import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { done, type JobPayload, later } from '../../../lib/queue/jobs.ts';
import { announceWebhook } from '../../../lib/queue/mirror.ts';
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
  return { connection, queues };
}

async function addJobs(queues: Queues, count: number): Promise<JobPayload<'render'>[]> {
  const payloads = Array.from({ length: count }, () => {
    const renderId = randomUUID();
    return { renderId, generation: 0, recipeHash: shaOf(renderId) };
  });
  await queues.renders.addBulk(
    payloads.map((data) => ({ name: 'render', data, opts: { jobId: data.recipeHash, priority: 1 } })),
  );
  return payloads;
}

function consume(
  connection: { redisUrl: string; prefix: string },
  handler: RunJobsOptions<'render'>['handler'],
  concurrency = 1,
): JobRunner {
  const runner = runJobs({ ...connection, kind: 'render', concurrency, handler, log: silentLog });
  opened.push({ close: () => runner.close(2_000) });
  return runner;
}

describe('jobs', () => {
  it('asked to run later come back, without being counted as failed', async () => {
    const { connection, queues } = setup();
    let runs = 0;
    consume(connection, async () => {
      runs += 1;
      return runs < 3 ? later('not yet', 20) : done('now');
    });
    const [render] = await addJobs(queues, 1);
    await waitFor(async () => (await queues.renders.getJobState(render!.recipeHash)) === 'completed', {
      label: 'the third run',
    });
    const job = await queues.renders.getJob(render!.recipeHash);
    expect(job).toMatchObject({ returnvalue: 'now', attemptsMade: 1 });
  });

  it('start no faster than the limit, over all workers of the queue', async () => {
    const { connection, queues } = setup();
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
    await addJobs(queues, 5);
    await waitFor(() => started.length === 5, { label: 'all five jobs' });
    // Two windows must have passed before the fifth; a tenth is left for the clocks of Redis and this process.
    expect(started[4]! - started[0]!).toBeGreaterThan(720);
  });

  it('under way are told of a shutdown and waited for', async () => {
    const { connection, queues } = setup();
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
    await addJobs(queues, 1);
    await waitFor(() => started, { label: 'the job to start' });
    await runner.close(5_000);
    expect([reason, settled]).toEqual(['shutdown', true]);
  });

  it('fetched while a runner is closing go back without having begun', async () => {
    const { connection, queues } = setup();
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
    await addJobs(queues, 1);
    await waitFor(() => begun.length > 0, { label: 'the first job' });
    const adding = addJobs(queues, 30);
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
