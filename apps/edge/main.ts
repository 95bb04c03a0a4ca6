import { createAnnouncer } from '../../lib/announce.ts';
import { createVerifier } from '../../lib/auth/tokens.ts';
import { openStatusCache } from '../../lib/cache/status-cache.ts';
import { loadEdgeConfig } from '../../lib/config/edge.ts';
import { openDatabase } from '../../lib/db/client.ts';
import { mirrorRows } from '../../lib/db/dispatch.ts';
import { createLogger } from '../../lib/log.ts';
import { createFleet } from '../../lib/media/fleet.ts';
import { createRegistry, serveMetrics } from '../../lib/metrics.ts';
import { createMirror } from '../../lib/queue/mirror.ts';
import { openQueues } from '../../lib/queue/queues.ts';
import { runMain } from '../../lib/run-main.ts';
import { onSignal } from '../../lib/shutdown.ts';
import { createApp } from './app.ts';
import { listen } from './listen.ts';
import { createStatuses } from './statuses.ts';

/** How long answers under way may take once the process has been told to stop. */
const DRAIN_MS = 10_000;

async function main(): Promise<void> {
  const config = loadEdgeConfig();
  const log = createLogger('edge', config.LOG_LEVEL);
  const database = openDatabase(config.DATABASE_URL, { max: config.DATABASE_POOL, appName: 'bakehouse-edge' });
  const queues = openQueues({ redisUrl: config.REDIS_URL, prefix: config.REDIS_PREFIX }, log);
  const registry = createRegistry('edge');
  const stopping = new AbortController();
  const cache = openStatusCache({ redisUrl: config.REDIS_URL, prefix: config.REDIS_PREFIX, log });

  const app = createApp({
    config,
    database,
    queues,
    mirror: createMirror({
      queue: queues.renders,
      rows: mirrorRows(database.db, config.RENDER_QUEUE_MAX_MIRRORED),
      log,
    }),
    media: createFleet({ targets: config.MEDIA_URL, token: config.MEDIA_TOKEN }),
    verify: createVerifier({
      secret: config.JWT_SECRET,
      jwksUrl: config.JWKS_URL,
      issuer: config.JWT_ISSUER,
      audience: config.JWT_AUDIENCE,
    }),
    registry,
    log,
    statuses: createStatuses(database.db, cache, createAnnouncer(database.db, cache, log)),
    stopping: stopping.signal,
  });

  const metrics = await serveMetrics(registry, { host: config.METRICS_HOST, port: config.METRICS_PORT });
  const listener = await listen(app, { host: config.EDGE_HOST, port: config.EDGE_PORT });

  onSignal(
    [
      {
        name: 'listener',
        run: () => {
          // /readyz says so to whoever still asks over an open connection, and whoever waits for news gets an answer.
          stopping.abort();
          return listener.close(DRAIN_MS);
        },
        deadlineMs: DRAIN_MS + 1_000,
      },
      { name: 'metrics', run: () => metrics.close(), deadlineMs: 1_000 },
      { name: 'queues', run: () => queues.close(), deadlineMs: 2_000 },
      { name: 'cache', run: async () => cache.close(), deadlineMs: 1_000 },
      { name: 'database', run: () => database.close(), deadlineMs: 6_000 },
    ],
    log,
  );
  process.stdout.write(`${JSON.stringify({ ready: true, url: listener.url, metricsUrl: metrics.url })}\n`);
}

runMain(main);
