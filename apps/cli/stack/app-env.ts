import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Env } from '../../../lib/config/env.ts';
import type { Services } from '../../../lib/services/start-services.ts';
import type { AppName } from './app-process.ts';
import type { Ports } from './ports.ts';
import type { StackSecrets } from './secrets.ts';

const LIBRARY_ID = '133';
const ZONE = 'bakehouse';

/** What only the media service may know: with these, videos and files can be written. */
const WRITE_KEYS = ['BUNNY_STREAM_KEY', 'BUNNY_STORAGE_KEY'];
/** What has no business outside the edge. */
const EDGE_SECRETS = ['JWT_SECRET', 'OPS_PASSWORD', 'BUNNY_WEBHOOK_TOKEN'];
/** What only edge and worker know: with it, webhooks can be forged. */
const SIGNING = ['WEBHOOK_SIGNING_KEY'];
const STATE = ['DATABASE_URL', 'REDIS_URL'];

/** Where Bunny's webhook goes. */
export const webhookUrl = (ports: Ports) => `http://127.0.0.1:${ports.edge}/webhooks/bunnystream`;

/**
 * The environment of each app: the caller's own, filled up with what was made up for this data folder, wired together,
 * and no app with a secret that it has no use for.
 */
export function appEnv(input: {
  given: Env;
  secrets: StackSecrets;
  services: Services;
  ports: Ports;
  dataDir: string;
  realBunny: boolean;
}): Record<AppName, Env> {
  const { given, secrets, services, ports, dataDir, realBunny } = input;
  const wiring = {
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    MEDIA_URL: `http://127.0.0.1:${ports.media}`,
  };
  const credentials = {
    JWT_SECRET: given.JWKS_URL ? undefined : secrets.jwtSecret,
    MEDIA_TOKEN: secrets.mediaToken,
    OPS_USER: 'ops',
    OPS_PASSWORD: secrets.opsPassword,
    WEBHOOK_SIGNING_KEY: secrets.webhookSigningKey,
    // Receivers that are being developed run on this machine, too.
    WEBHOOK_ALLOW_PRIVATE: given.NODE_ENV === 'production' ? undefined : 'true',
  };
  const bunny = realBunny
    ? {}
    : {
        BUNNY_STREAM_URL: `http://127.0.0.1:${ports.simStream}`,
        BUNNY_STORAGE_URL: `http://127.0.0.1:${ports.simStorage}`,
        BUNNY_CDN_URL: `http://127.0.0.1:${ports.simCdn}`,
        BUNNY_LIBRARY_ID: LIBRARY_ID,
        BUNNY_STREAM_KEY: secrets.streamKey,
        BUNNY_READ_ONLY_KEY: secrets.readOnlyKey,
        BUNNY_STORAGE_ZONE: ZONE,
        BUNNY_STORAGE_KEY: secrets.storageKey,
        BUNNY_STORAGE_READ_KEY: secrets.storageReadKey,
        BUNNY_WEBHOOK_TOKEN: secrets.webhookToken,
      };
  const common = { LOG_LEVEL: 'info', ...credentials, ...bunny, ...given };
  return {
    edge: {
      ...without(common, WRITE_KEYS),
      ...wiring,
      EDGE_PORT: String(ports.edge),
      METRICS_PORT: String(ports.edgeMetrics),
    },
    worker: {
      // On one machine more bakes at once only make each of them slower.
      RENDER_CONCURRENCY: String(Math.max(2, availableParallelism())),
      TRANSCODE_DEADLINE_MS: '60000',
      ...without(common, [...WRITE_KEYS, ...EDGE_SECRETS, 'BUNNY_READ_ONLY_KEY', 'BUNNY_STORAGE_READ_KEY']),
      ...wiring,
      METRICS_PORT: String(ports.workerMetrics),
    },
    // No database and no Redis: the media service knows neither.
    media: {
      ...without(common, [...STATE, ...EDGE_SECRETS, ...SIGNING]),
      MEDIA_PORT: String(ports.media),
      MEDIA_CACHE_DIR: given.MEDIA_CACHE_DIR ?? join(dataDir, 'media', 'cache'),
      MEDIA_WORK_DIR: given.MEDIA_WORK_DIR ?? join(dataDir, 'media', 'work'),
    },
    'bunny-sim': {
      ...without(common, [...STATE, ...EDGE_SECRETS, ...SIGNING, 'MEDIA_TOKEN']),
      SIM_STREAM_PORT: String(ports.simStream),
      SIM_STORAGE_PORT: String(ports.simStorage),
      SIM_CDN_PORT: String(ports.simCdn),
      SIM_DATA_DIR: join(dataDir, 'bunny'),
      SIM_WEBHOOK_URL: webhookUrl(ports),
    },
  };
}

const without = (env: Env, names: readonly string[]): Env =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
