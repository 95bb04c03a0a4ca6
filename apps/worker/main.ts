import { loadWorkerConfig } from '../../lib/config/worker.ts';
import { createLogger } from '../../lib/log.ts';
import { createFleet } from '../../lib/media/fleet.ts';
import { createRegistry, serveMetrics } from '../../lib/metrics.ts';
import { runMain } from '../../lib/run-main.ts';
import { onSignal } from '../../lib/shutdown.ts';
import { startWorker } from './worker.ts';

async function main() {
  const config = loadWorkerConfig();
  const log = createLogger('worker', config.LOG_LEVEL);
  const media = createFleet({ targets: config.MEDIA_URL, token: config.MEDIA_TOKEN });
  const registry = createRegistry('worker');
  const metrics = await serveMetrics(registry, {
    host: config.METRICS_HOST,
    port: config.METRICS_PORT,
    health: () => worker.health(),
  });
  // Whoever supervises this process starts another.
  const worker = startWorker(config, media, registry, log, (kind) => leave(`no ${kind} job is taken`));
  const leave = onSignal([...worker.steps, { name: 'metrics', run: metrics.close, deadlineMs: 1_000 }], log);
  process.stdout.write(`${JSON.stringify({ ready: true, metricsUrl: metrics.url })}\n`);
}

runMain(main);
