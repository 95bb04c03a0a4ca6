import type { Registry } from 'prom-client';
import type { WorkerConfig } from '../../lib/config/worker.ts';
import { type Database, openDatabase } from '../../lib/db/client.ts';
import { mirrorRows } from '../../lib/db/dispatch.ts';
import type { Logger } from '../../lib/log.ts';
import type { Fleet } from '../../lib/media/fleet.ts';
import { createMirror } from '../../lib/queue/mirror.ts';
import { openQueues } from '../../lib/queue/queues.ts';
import { runJobs } from '../../lib/queue/run-jobs.ts';
import type { ShutdownStep } from '../../lib/shutdown.ts';
import type { WorkerDeps } from './deps.ts';
import { HANDLERS } from './handlers/index.ts';
import { startDuties } from './maintenance/duty.ts';
import { DUTIES } from './maintenance/index.ts';
import { workerMetrics } from './metrics.ts';

/** Connections beyond the jobs': one for each duty's lock, and a few for its work. */
const SPARE_CONNECTIONS = DUTIES.length + 5;

/**
 * Starts consuming and housekeeping; nothing waits for Postgres or Redis to be there. The steps answered stop it in
 * order: no new work, rows handed back, then the connections.
 */
export function startWorker(
  config: WorkerConfig,
  media: Fleet,
  registry: Registry,
  log: Logger,
): { steps: ShutdownStep[] } {
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
  const metrics = workerMetrics(registry);
  const onVerdict: WorkerDeps['onVerdict'] = (verdict, cause) => metrics.transcodes.inc({ verdict, cause });
  const deps: WorkerDeps = { config, database, media, mirror, metrics, onVerdict, log };

  const renders = runJobs({
    ...connection,
    kind: 'render',
    concurrency: config.RENDER_CONCURRENCY,
    // The job of a dead worker must be out of the way when its lease has run out, or the render waits for it.
    lockMs: Math.min(30_000, Math.max(1_000, Math.floor(config.RENDER_LEASE_MS / 2))),
    ...(config.RENDER_RATE_MAX > 0 && { limiter: { max: config.RENDER_RATE_MAX, duration: config.RENDER_RATE_MS } }),
    handler: HANDLERS.render(deps),
    log,
  });
  const webhooks = runJobs({
    ...connection,
    kind: 'webhook',
    concurrency: config.WEBHOOK_CONCURRENCY,
    handler: HANDLERS.webhook(deps),
    log,
  });
  const duties = startDuties(deps, DUTIES);

  const jobsMs = Math.floor(config.SHUTDOWN_MS * 0.7);
  const restMs = Math.floor(config.SHUTDOWN_MS * 0.1);
  return {
    steps: [
      {
        name: 'jobs',
        run: () => Promise.all([renders.close(jobsMs), webhooks.close(jobsMs)]),
        deadlineMs: jobsMs + 500,
      },
      { name: 'maintenance', run: duties.stop, deadlineMs: restMs },
      { name: 'queues', run: queues.close, deadlineMs: restMs },
      { name: 'database', run: database.close, deadlineMs: restMs },
    ],
  };
}
