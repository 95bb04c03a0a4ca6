import type { Registry } from 'prom-client';
import { createAnnouncer } from '../../lib/announce.ts';
import { openLimiter } from '../../lib/cache/limiter.ts';
import { openStatusBell } from '../../lib/cache/status-cache.ts';
import type { WorkerConfig } from '../../lib/config/worker.ts';
import { type Database, openDatabase } from '../../lib/db/client.ts';
import { mirrorRows } from '../../lib/db/dispatch.ts';
import type { Logger } from '../../lib/log.ts';
import type { Fleet } from '../../lib/media/fleet.ts';
import type { Health } from '../../lib/metrics.ts';
import type { JobKind } from '../../lib/queue/jobs.ts';
import { createMirror } from '../../lib/queue/mirror.ts';
import { openQueues, type Queues } from '../../lib/queue/queues.ts';
import { runJobs } from '../../lib/queue/run-jobs.ts';
import type { ShutdownStep } from '../../lib/shutdown.ts';
import { startDeliverer } from './deliverer.ts';
import type { WorkerDeps } from './deps.ts';
import { HANDLERS } from './handlers/index.ts';
import { startDuties } from './maintenance/duty.ts';
import { DUTIES } from './maintenance/index.ts';
import { mirrorSweep } from './maintenance/mirror-sweep.ts';
import { watchLimiter, workerMetrics } from './metrics.ts';
import { openPermits } from './permits.ts';

/** Connections beyond the jobs': one for each duty's lock, and a few for its work and for what becomes of deliveries. */
const SPARE_CONNECTIONS = DUTIES.length + 6;
/** An announcement outlives so many missed looks, or, behind a load balancer, looks that met another instance. */
const ANNOUNCED_LOOKS = 3;

/** How long a permit, and the lock of a job, outlive a worker that died with them; less where leases are short. */
const PERMIT_MS = 15_000;
const LOCK_MS = 30_000;

export interface RunningWorker {
  /** Stop it in order: no new work, rows handed back, then the connections. */
  steps: ShutdownStep[];
  /** Bad while jobs wait that this process should take and does not. */
  health(): Health;
}

/**
 * Starts consuming and housekeeping; nothing waits for Postgres, Redis or media to be there. `onGivenUp` is called when
 * jobs of a kind are not taken, whatever was tried: only a new process can help then.
 */
export function startWorker(
  config: WorkerConfig,
  media: Fleet,
  registry: Registry,
  log: Logger,
  onGivenUp: (kind: JobKind) => void = () => undefined,
): RunningWorker {
  const connection = { redisUrl: config.REDIS_URL, prefix: config.REDIS_PREFIX };
  const database: Database = openDatabase(config.DATABASE_URL, {
    max: config.RENDER_CONCURRENCY + config.WEBHOOK_CONCURRENCY + SPARE_CONNECTIONS,
    appName: 'bakehouse-worker',
  });
  const queues = openQueues(connection, log);
  const mirror = createMirror({
    queue: queues.renders,
    rows: mirrorRows(database.db, config.RENDER_QUEUE_MAX_MIRRORED),
    log,
  });
  // A lease was last renewed at most a third of it before its worker died: what is to be gone first has half.
  const halfLease = Math.max(1_000, Math.floor(config.RENDER_LEASE_MS / 2));
  const announcedMs = ANNOUNCED_LOOKS * config.MEDIA_POLL_MS;
  const limiter = openLimiter({
    ...connection,
    permitMs: Math.min(PERMIT_MS, halfLease),
    announcedMs,
    capacity: config.MEDIA_CAPACITY,
    localCap: config.MEDIA_LOCAL_CAP,
    log,
  });
  const metrics = workerMetrics(registry);
  watchLimiter(registry, limiter);
  const permits = openPermits({ fleet: media, limiter, pollMs: config.MEDIA_POLL_MS, announcedMs, metrics, log });
  const onVerdict: WorkerDeps['onVerdict'] = (verdict, cause) => metrics.transcodes.inc({ verdict, cause });
  const bell = openStatusBell({ ...connection, log });
  const announcer = createAnnouncer(database.db, bell, log);
  const onChanged: WorkerDeps['onChanged'] = (renders) => announcer.changedSoon({ renders });
  const deps: WorkerDeps = { config, database, media, mirror, permits, metrics, onVerdict, onChanged, log };

  const watch = (kind: JobKind, queue: Queues['renders']) => ({
    queue,
    stallMs: config.CONSUME_STALL_MS,
    onStalled: (then: 'replaced' | 'given-up') => {
      metrics.notConsuming.set({ kind }, 1);
      if (then === 'replaced') metrics.consumersReplaced.inc({ kind });
      else onGivenUp(kind);
    },
    onRecovered: () => metrics.notConsuming.set({ kind }, 0),
  });
  const renders = runJobs({
    ...connection,
    kind: 'render',
    concurrency: config.RENDER_CONCURRENCY,
    // Where it has run out with the lease of a dead worker, the mirror may replace the job.
    lockMs: Math.min(LOCK_MS, halfLease),
    ...(config.RENDER_RATE_MAX > 0 && { limiter: { max: config.RENDER_RATE_MAX, duration: config.RENDER_RATE_MS } }),
    watch: watch('render', queues.renders),
    // The queue holds the first renders only; the next are let in when it has run dry, not when a sweep is due.
    onDrained: () => duties.wake(mirrorSweep),
    handler: HANDLERS.render(deps),
    log,
  });
  const webhooks = runJobs({
    ...connection,
    kind: 'webhook',
    concurrency: config.WEBHOOK_CONCURRENCY,
    watch: watch('webhook', queues.webhooks),
    handler: HANDLERS.webhook(deps),
    log,
  });
  const duties = startDuties(deps, DUTIES);
  const deliverer = startDeliverer(deps);

  const jobsMs = Math.floor(config.SHUTDOWN_MS * 0.7);
  const restMs = Math.floor(config.SHUTDOWN_MS * 0.1);
  return {
    steps: [
      {
        name: 'jobs',
        run: () => Promise.all([renders.close(jobsMs), webhooks.close(jobsMs), deliverer.stop()]),
        deadlineMs: jobsMs + 500,
      },
      { name: 'maintenance', run: duties.stop, deadlineMs: restMs },
      { name: 'announcements', run: () => announcer.close().finally(bell.close), deadlineMs: restMs },
      {
        name: 'permits',
        run: () => {
          permits.close();
          limiter.close();
        },
        deadlineMs: restMs,
      },
      { name: 'queues', run: queues.close, deadlineMs: restMs },
      { name: 'database', run: database.close, deadlineMs: restMs },
    ],
    health: () => {
      const kinds = Object.entries({ render: renders, webhook: webhooks }).flatMap(([kind, { isConsuming }]) =>
        isConsuming() ? [] : [kind],
      );
      const told = permits.hasMedia() ? {} : { media: 'no media' };
      return kinds.length > 0
        ? { ok: false, body: { status: 'not-consuming', kinds, ...told } }
        : { ok: true, body: { status: 'ok', ...told } };
    },
  };
}
