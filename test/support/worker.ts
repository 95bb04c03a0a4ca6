import type { Registry } from 'prom-client';
import { startWorker } from '../../apps/worker/worker.ts';
import { loadWorkerConfig } from '../../lib/config/worker.ts';
import { createFleet } from '../../lib/media/fleet.ts';
import { createRegistry, type Health } from '../../lib/metrics.ts';
import { runShutdown } from '../../lib/shutdown.ts';
import { silentLog } from './log.ts';

export interface TestWorker {
  health(): Health;
  /** What Prometheus would be told. */
  registry: Registry;
  /** Kinds of job that it has given up to consume. */
  givenUp: string[];
  /** The ordered shutdown that SIGTERM starts; answers the steps that failed. */
  stop(): Promise<string[]>;
}

/** The worker as its main starts it, in this process, with tiny limits. */
export function startTestWorker(
  given: { databaseUrl: string; redisUrl: string; prefix: string; mediaUrl: string; mediaToken: string },
  env: Record<string, string> = {},
): TestWorker {
  const config = loadWorkerConfig({
    NODE_ENV: 'test',
    DATABASE_URL: given.databaseUrl,
    REDIS_URL: given.redisUrl,
    REDIS_PREFIX: given.prefix,
    MEDIA_URL: given.mediaUrl,
    MEDIA_TOKEN: given.mediaToken,
    RENDER_LEASE_MS: '1500',
    RENDER_BACKOFF_MS: '20',
    RENDER_BACKOFF_MAX_MS: '100',
    RENDER_REDISPATCH_MS: '500',
    RENDER_SILENCE_MS: '5000',
    TRANSCODE_DEADLINE_MS: '60000',
    SWEEP_MS: '100',
    MEDIA_POLL_MS: '200',
    SHUTDOWN_MS: '5000',
    ...env,
  });
  const media = createFleet({ targets: config.MEDIA_URL, token: config.MEDIA_TOKEN });
  const registry = createRegistry('worker');
  const givenUp: string[] = [];
  const { steps, health } = startWorker(config, media, registry, silentLog, (kind) => givenUp.push(kind));
  let stopped: Promise<string[]> | undefined;
  return {
    ...{ health, registry, givenUp },
    stop: () => {
      stopped ??= runShutdown(steps, silentLog);
      return stopped;
    },
  };
}
