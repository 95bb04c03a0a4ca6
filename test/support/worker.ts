import { startWorker } from '../../apps/worker/worker.ts';
import { loadWorkerConfig } from '../../lib/config/worker.ts';
import { createFleet } from '../../lib/media/fleet.ts';
import { createRegistry } from '../../lib/metrics.ts';
import { runShutdown } from '../../lib/shutdown.ts';
import { silentLog } from './log.ts';

export interface TestWorker {
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
    SHUTDOWN_MS: '5000',
    ...env,
  });
  const media = createFleet({ targets: config.MEDIA_URL, token: config.MEDIA_TOKEN });
  const { steps } = startWorker(config, media, createRegistry('worker'), silentLog);
  let stopped: Promise<string[]> | undefined;
  return {
    stop: () => {
      stopped ??= runShutdown(steps, silentLog);
      return stopped;
    },
  };
}
