import { EventEmitter } from 'node:events';
import { Logger as GraphileLogger, run } from 'graphile-worker';
import PQueue from 'p-queue';
import PgBoss from 'pg-boss';
import type { WorkerDeps } from '../../../apps/worker/deps.ts';
import { HANDLERS } from '../../../apps/worker/handlers/index.ts';
import { startDuties } from '../../../apps/worker/maintenance/duty.ts';
import { DUTIES } from '../../../apps/worker/maintenance/index.ts';
import { workerMetrics } from '../../../apps/worker/metrics.ts';
import { openPermits } from '../../../apps/worker/permits.ts';
import { startWorker } from '../../../apps/worker/worker.ts';
import { createAnnouncer } from '../../../lib/announce.ts';
import { openLimiter } from '../../../lib/cache/limiter.ts';
import { openStatusBell } from '../../../lib/cache/status-cache.ts';
import { loadWorkerConfig, type WorkerConfig } from '../../../lib/config/worker.ts';
import { openDatabase } from '../../../lib/db/client.ts';
import { createLogger } from '../../../lib/log.ts';
import { createRegistry } from '../../../lib/metrics.ts';
import { runShutdown } from '../../../lib/shutdown.ts';
import { noopMedia, TARGET } from './noop-media.ts';
import { FETCH_AHEAD, QUEUE_CONNECTIONS, type RenderJob, type Setup, type WebhookJob } from './variants.ts';

/** Where the jobs come in that no queue carries. */
export const handover = new EventEmitter<{ renders: [RenderJob[]]; webhook: [WebhookJob] }>();

interface Handlers {
  render(job: RenderJob): Promise<unknown>;
  webhook(job: WebhookJob): Promise<unknown>;
}

type Stop = () => Promise<unknown>;

const log = createLogger('worker', 'info');

/** Starts the worker's side of a variant; answers how to stop it. */
export async function startConsumer(setup: Setup): Promise<Stop> {
  const config = loadWorkerConfig({
    NODE_ENV: 'production',
    DATABASE_URL: setup.databaseUrl,
    REDIS_URL: setup.redisUrl,
    REDIS_PREFIX: setup.prefix,
    MEDIA_URL: TARGET,
    MEDIA_TOKEN: 'the media of a bench is in the process',
    RENDER_CONCURRENCY: String(setup.concurrency),
    WEBHOOK_CONCURRENCY: String(setup.concurrency),
  });
  if (setup.variant === 'bakehouse') {
    const { steps } = startWorker(config, noopMedia, createRegistry('worker'), log);
    return () => runShutdown(steps, log);
  }
  const { deps, stop } = openDeps(config);
  const signal = new AbortController().signal;
  const [render, webhook] = [HANDLERS.render(deps), HANDLERS.webhook(deps)];
  const handlers: Handlers = {
    render: (job) => render(job, signal),
    webhook: (job) => webhook(job, signal),
  };
  const stopQueue = await QUEUES[setup.variant](setup, handlers);
  return async () => {
    await stopQueue();
    await stop();
  };
}

/**
 * What startWorker makes for its handlers, permits included, and the same housekeeping, but for the mirror, which these do
 * not need. The number of bakes is bounded over all workers whatever queue feeds them.
 */
function openDeps(config: WorkerConfig): { deps: WorkerDeps; stop: Stop } {
  const database = openDatabase(config.DATABASE_URL, {
    max: config.RENDER_CONCURRENCY + config.WEBHOOK_CONCURRENCY + DUTIES.length + 5,
    appName: 'bench-worker',
  });
  const metrics = workerMetrics(createRegistry('worker'));
  const announcedMs = 3 * config.MEDIA_POLL_MS;
  const limiter = openLimiter({
    redisUrl: config.REDIS_URL,
    prefix: config.REDIS_PREFIX,
    permitMs: 15_000,
    announcedMs,
    localCap: config.MEDIA_LOCAL_CAP,
    log,
  });
  const permits = openPermits({ fleet: noopMedia, limiter, pollMs: config.MEDIA_POLL_MS, announcedMs, metrics, log });
  const bell = openStatusBell({ redisUrl: config.REDIS_URL, prefix: config.REDIS_PREFIX, log });
  const announcer = createAnnouncer(database.db, bell, log);
  const deps: WorkerDeps = {
    config,
    database,
    media: noopMedia,
    mirror: { dispatch: async () => true, sweep: async () => 0 },
    permits,
    metrics,
    onVerdict: (verdict, cause) => metrics.transcodes.inc({ verdict, cause }),
    onChanged: (renders) => announcer.changedSoon({ renders }),
    log,
  };
  const duties = startDuties(
    deps,
    DUTIES.filter(({ name }) => name !== 'mirror-sweep'),
  );
  const stop = async () => {
    await duties.stop();
    permits.close();
    limiter.close();
    await announcer.close();
    bell.close();
    await database.close();
  };
  return { deps, stop };
}

type Queue = (setup: Setup, handlers: Handlers) => Promise<Stop>;

/**
 * pg-boss fetches and completes in batches, and waits for the whole of one before the next; two loops per queue, so that
 * one batch is worked on while the other is fetched. A loop asks again at once instead of after its polling interval
 * (half a second at the least) where its batch has ended, and soon where there was none: `notifyWorker`, which is there
 * for that. Webhooks have no order, and are always fetched ahead.
 */
const pgBoss =
  (rendersAhead: boolean): Queue =>
  async ({ databaseUrl, concurrency }, handlers) => {
    const boss = new PgBoss({ connectionString: databaseUrl, max: QUEUE_CONNECTIONS, schedule: false });
    boss.on('error', (err) => log.error({ err }, 'pg-boss'));
    await boss.start();
    const loops: string[] = [];
    const consume = async <T extends object>(name: string, atOnce: number, handler: (job: T) => Promise<unknown>) => {
      const slots = new PQueue({ concurrency });
      await boss.createQueue(name);
      for (let loop = 0; loop < 2; loop++) {
        const id: string = await boss.work<T>(
          name,
          { batchSize: Math.max(1, atOnce / 2), pollingIntervalSeconds: 0.5 },
          async (jobs) => {
            await slots.addAll(jobs.map((job) => () => handler(job.data)));
            boss.notifyWorker(id);
          },
        );
        loops.push(id);
      }
    };
    await consume('render', rendersAhead ? FETCH_AHEAD : concurrency, handlers.render);
    await consume('webhook', FETCH_AHEAD, handlers.webhook);
    const impatience = setInterval(() => loops.forEach((id) => void boss.notifyWorker(id)), 20);
    return async () => {
      clearInterval(impatience);
      await boss.stop({ graceful: false });
    };
  };

/**
 * The settings of graphile-worker's own performance page, completion in batches and woken by LISTEN; with the local queue
 * that it recommends there only where renders may be fetched ahead, since it has one for all tasks.
 */
const graphileWorker =
  (ahead: boolean): Queue =>
  async ({ databaseUrl, concurrency }, handlers) => {
    const runner = await run({
      taskList: {
        render: async (payload) => void (await handlers.render(payload as RenderJob)),
        webhook: async (payload) => void (await handlers.webhook(payload as WebhookJob)),
      },
      noHandleSignals: true,
      logger: new GraphileLogger(() => () => {}),
      preset: {
        worker: {
          connectionString: databaseUrl,
          concurrentJobs: 2 * concurrency,
          maxPoolSize: QUEUE_CONNECTIONS,
          ...(ahead && { localQueue: { size: FETCH_AHEAD } }),
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
    });
    return () => runner.stop();
  };

const noQueue: Queue = async ({ concurrency }, handlers) => {
  const renders = new PQueue({ concurrency });
  const webhooks = new PQueue({ concurrency });
  handover.on('renders', (jobs) => void renders.addAll(jobs.map((job) => () => handlers.render(job))));
  handover.on('webhook', (job) => void webhooks.add(() => handlers.webhook(job)));
  return () => Promise.all([renders.onIdle(), webhooks.onIdle()]);
};

const QUEUES: Record<Exclude<Setup['variant'], 'bakehouse'>, Queue> = {
  'pg-boss': pgBoss(false),
  'graphile-worker': graphileWorker(false),
  'pg-boss ahead': pgBoss(true),
  'graphile-worker ahead': graphileWorker(true),
  'no queue': noQueue,
};
