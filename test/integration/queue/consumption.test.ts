import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { done, type JobPayload, later, type Outcome } from '../../../lib/queue/jobs.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { type RunJobsOptions, runJobs } from '../../../lib/queue/run-jobs.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

const STALL_MS = 400;

/** A consumer behind a proxy of its own, and the producers' side, whose connection is whole. */
async function setup(options: Partial<RunJobsOptions<'webhook'>> = {}) {
  const { url: redisUrl, prefix } = testRedis();
  const proxy = await startTcpProxy(redisUrl);
  const queues = openQueues({ redisUrl, prefix }, silentLog);
  opened.push(proxy.close, queues.close);
  const told: string[] = [];
  const handled: string[] = [];
  const runner = runJobs({
    ...{ redisUrl: proxy.url, prefix, kind: 'webhook', concurrency: 2, lockMs: 1_000, log: silentLog },
    handler: async ({ eventId }) => {
      handled.push(eventId);
      return done('ok');
    },
    watch: {
      queue: queues.webhooks,
      stallMs: STALL_MS,
      onStalled: (then) => told.push(then),
      onRecovered: () => told.push('recovered'),
    },
    ...options,
  });
  opened.push(() => runner.close(1_000));
  const add = async (): Promise<string> => {
    const eventId = randomUUID();
    await queues.webhooks.add('webhook', { eventId } satisfies JobPayload<'webhook'>, { jobId: `webhook-${eventId}` });
    return eventId;
  };
  return { proxy, queue: queues.webhooks, runner, told, handled, add };
}

type Setup = Awaited<ReturnType<typeof setup>>;
const isHandled = (on: Setup, id: string) =>
  waitFor(() => on.handled.includes(id), { label: 'the job to be handled', timeoutMs: 8_000 });

/** Longer than a stall needs to be noticed. */
const LONG_ENOUGH_MS = 3 * STALL_MS;

describe('a consumer whose connections are dead without a word', () => {
  it('is noticed, replaced, and takes jobs again', async () => {
    const on = await setup();
    await isHandled(on, await on.add());
    on.proxy.stallOpen();
    const id = await on.add();
    await waitFor(() => !on.runner.isConsuming(), { label: 'the stall to be noticed', timeoutMs: 3_000 });
    expect(on.told).toContain('replaced');
    await isHandled(on, id);
    await waitFor(() => on.runner.isConsuming(), { label: 'health to be good again' });
    expect(on.told).not.toContain('given-up');
    expect(on.told.at(-1)).toBe('recovered');
  });

  it('is given up when three successors have not helped, and is good again when the queue is empty', async () => {
    const on = await setup();
    await isHandled(on, await on.add());
    on.proxy.stall();
    await on.add();
    await waitFor(() => on.told.includes('given-up'), { label: 'it to be given up', timeoutMs: 8_000 });
    expect(on.told.slice(0, 4)).toEqual(['replaced', 'replaced', 'replaced', 'given-up']);
    expect(on.runner.isConsuming()).toBe(false);
    await on.queue.drain();
    await waitFor(() => on.runner.isConsuming(), { label: 'health to be good again' });
    expect(on.told.at(-1)).toBe('recovered');
  });

  it.each([
    ['done', () => done('late')],
    ['later', () => later('retry', 10)],
  ])('lets what is under way end (%s), and hears of a shutdown there', async (_, outcome) => {
    const ends: ((outcome: Outcome) => void)[] = [];
    const signals: AbortSignal[] = [];
    const on = await setup({
      handler: (_payload, signal) => {
        signals.push(signal);
        return new Promise((resolve) => ends.push(resolve));
      },
    });
    await on.add();
    await waitFor(() => ends.length === 1, { label: 'the first job' });
    on.proxy.stallOpen();
    await on.add();
    await waitFor(() => ends.length >= 2, { label: 'the second job, by a successor', timeoutMs: 8_000 });
    expect(signals[0]?.aborted).toBe(false);
    ends[0]?.(outcome());
    await delay(50);
    on.proxy.stallOpen();
    await on.add();
    await waitFor(() => on.told.filter((told) => told === 'replaced').length >= 2, {
      label: 'a second replacement',
      timeoutMs: 8_000,
    });
    const closed = on.runner.close(2_000);
    await waitFor(() => signals.slice(1).every(({ aborted }) => aborted), { label: 'the shutdown to be told' });
    expect(signals[1]?.reason).toBe('shutdown');
    for (const end of ends) end(later('shutdown', 0));
    await closed;
  });
});

describe('a job that is added again while it runs, because Redis had forgotten it', () => {
  it('leaves the first run counted, and hearing of a shutdown', async () => {
    const signals: AbortSignal[] = [];
    let endFirst: (outcome: Outcome) => void = () => undefined;
    const first = new Promise<Outcome>((resolve) => {
      endFirst = resolve;
    });
    const on = await setup({
      lockMs: 30_000,
      handler: (_payload, signal) => {
        signals.push(signal);
        return signals.length === 1 ? first : Promise.resolve(done('not claimable'));
      },
    });
    const id = await on.add();
    await waitFor(() => signals.length === 1, { label: 'the first run' });
    await on.queue.obliterate({ force: true });
    await on.queue.add('webhook', { eventId: id }, { jobId: `webhook-${id}` });
    await waitFor(async () => signals.length === 2 && (await on.queue.getActiveCount()) === 0, {
      label: 'the second run to end',
    });
    const closed = on.runner.close(2_000);
    await waitFor(() => signals[0]?.aborted, { label: 'the shutdown to be told', timeoutMs: 1_000 });
    endFirst(later('shutdown', 0));
    await closed;
  });
});

describe('a consumer that takes nothing', () => {
  it.each<[string, (on: Setup) => Promise<unknown>]>([
    ['because there is nothing', async () => undefined],
    [
      'because the queue is paused',
      async (on) => {
        await on.queue.pause();
        await on.add();
      },
    ],
    [
      'because the queue is at its rate limit',
      async (on) => {
        await on.queue.rateLimit(60_000);
        await on.add();
      },
    ],
    [
      'because what there is is not due',
      async (on) => {
        const eventId = randomUUID();
        await on.queue.add('webhook', { eventId }, { jobId: `webhook-${eventId}`, delay: 60_000 });
      },
    ],
  ])('%s is not stalled', async (_, given) => {
    const on = await setup();
    await waitFor(async () => (await on.queue.getWorkersCount()) >= 1, { label: 'the consumer to be there' });
    await given(on);
    await delay(LONG_ENOUGH_MS);
    expect([on.runner.isConsuming(), on.told]).toEqual([true, []]);
  });

  it('while nobody can say whether there is anything, is not stalled', async () => {
    const { url: redisUrl, prefix } = testRedis();
    const asked = await startTcpProxy(redisUrl);
    const behind = openQueues({ redisUrl: asked.url, prefix }, silentLog);
    opened.push(asked.close, behind.close);
    const told: string[] = [];
    const tell = (what: string) => told.push(what);
    const watch = { queue: behind.webhooks, stallMs: STALL_MS, onStalled: tell, onRecovered: () => tell('recovered') };
    const on = await setup({ redisUrl: asked.url, prefix, watch });
    await asked.refuse();
    const producers = openQueues({ redisUrl, prefix }, silentLog);
    opened.push(producers.close);
    await producers.webhooks.add('webhook', { eventId: randomUUID() });
    await delay(LONG_ENOUGH_MS);
    expect([on.runner.isConsuming(), told]).toEqual([true, []]);
  });

  it('because every slot is taken is not stalled', async () => {
    const on = await setup({ handler: () => new Promise(() => undefined) });
    for (let i = 0; i < 4; i++) await on.add();
    await waitFor(async () => (await on.queue.getActiveCount()) === 2, { label: 'all slots to be taken' });
    await delay(LONG_ENOUGH_MS);
    expect([on.runner.isConsuming(), on.told]).toEqual([true, []]);
  });
});
