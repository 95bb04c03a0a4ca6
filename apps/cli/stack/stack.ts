import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type CliConfig, inheritedEnv } from '../../../lib/config/cli.ts';
import { pipelineSchema } from '../../../lib/config/pipeline.ts';
import { migrate } from '../../../lib/db/migrate.ts';
import type { Role } from '../../../lib/domain/roles.ts';
import type { Logger } from '../../../lib/log.ts';
import { redisFromSetup } from '../../../lib/services/setup-file.ts';
import { startServices } from '../../../lib/services/start-services.ts';
import { appEnv, webhookUrl } from './app-env.ts';
import { type AppName, type AppProcess, startApp } from './app-process.ts';
import { issueTokens, rememberPeople } from './people.ts';
import { takePorts } from './ports.ts';
import { announceRunning, withdrawRunning } from './running.ts';
import { ensureSecrets } from './secrets.ts';

export interface StackOptions {
  config: CliConfig;
  /** Drop what earlier runs kept. */
  fresh: boolean;
  log: Logger;
  onStep?: (step: string) => void;
}

/** Everything running, as `up --json` tells it. */
export interface StackDescription {
  edge: { url: string; pid: number | null };
  worker: { pid: number | null };
  media: { url: string; pid: number | null; token: string };
  /** Null where the environment names a real Bunny. */
  bunnySim: {
    streamUrl: string;
    storageUrl: string;
    cdnUrl: string;
    libraryId: number;
    streamKey: string;
    readOnlyKey: string;
    zone: string;
    storageKey: string;
    pid: number | null;
  } | null;
  metricsUrl: string;
  databaseUrl: string;
  redisUrl: string;
  postgresPid: number | null;
  redisPid: number | null;
  tokens: Record<Role, string>;
  webhook: { url: string; token: string };
  ops: { url: string; user: string; password: string };
  dataDir: string;
}

export interface Stack {
  describe(): StackDescription;
  orgId: string;
  databaseUrl: string;
  stop(): Promise<void>;
}

const STOP_DEADLINE_MS: Record<AppName, number> = { edge: 15_000, worker: 20_000, media: 15_000, 'bunny-sim': 8_000 };

/**
 * Starts Postgres, Redis, Bunny's stand-in and every app, each as its own process on a private port, and resolves when
 * all of them serve. What the caller's environment sets wins over what is made up here, except for the wiring between
 * the parts. Rejects with nothing left running.
 */
export async function startStack({ config, fresh, log, onStep = () => {} }: StackOptions): Promise<Stack> {
  const dataDir = resolve(config.BAKEHOUSE_DATA_DIR);
  onStep('Postgres and Redis');
  const services = await startServices({
    dataDir,
    databaseUrl: config.DATABASE_URL,
    redisUrl: config.REDIS_URL ?? (await redisFromSetup()),
    path: config.PATH,
    fresh,
    log,
  });
  const apps = new Map<AppName, AppProcess>();
  const stop = async () => {
    for (const app of ['edge', 'worker', 'media', 'bunny-sim'] as const)
      await apps.get(app)?.stop(STOP_DEADLINE_MS[app]);
    await withdrawRunning(dataDir).finally(services.stop);
  };
  try {
    // Only now: the lock on the folder is ours.
    if (fresh)
      for (const folder of ['bunny', 'media', 'logs'])
        await rm(join(dataDir, folder), { recursive: true, force: true });
    const secrets = await ensureSecrets(dataDir);
    onStep('database schema');
    await migrate(services.databaseUrl);
    await rememberPeople(services.databaseUrl, secrets.orgId);

    const given = inheritedEnv();
    const realBunny = config.BUNNY_STREAM_URL !== undefined;
    const ports = await takePorts(dataDir, config.EDGE_PORT);
    const env = appEnv({ given, secrets, services, ports, dataDir, realBunny });
    const start = async (app: AppName) => {
      apps.set(app, await startApp({ app, env: env[app], logDir: join(dataDir, 'logs'), log }));
    };
    onStep(realBunny ? 'media, worker, edge' : 'Bunny simulator, media, worker, edge');
    // The folder itself must let Postgres' account through; what is of ours in it is nobody else's business.
    for (const folder of ['bunny', 'media', 'logs', 'demo']) {
      await mkdir(join(dataDir, folder), { recursive: true, mode: 0o700 });
    }
    const names: AppName[] = realBunny ? ['media', 'worker', 'edge'] : ['bunny-sim', 'media', 'worker', 'edge'];
    const started = await Promise.allSettled(names.map(start));
    for (const outcome of started) if (outcome.status === 'rejected') throw outcome.reason;

    const tokens = await issueTokens(config, env.edge.JWT_SECRET ?? secrets.jwtSecret, secrets.orgId);
    const media = { url: `http://127.0.0.1:${ports.media}`, token: env.edge.MEDIA_TOKEN ?? '' };
    const describe = (): StackDescription => ({
      edge: { url: `http://127.0.0.1:${ports.edge}`, pid: apps.get('edge')?.pid ?? null },
      worker: { pid: apps.get('worker')?.pid ?? null },
      media: { ...media, pid: apps.get('media')?.pid ?? null },
      bunnySim: realBunny
        ? null
        : {
            streamUrl: `http://127.0.0.1:${ports.simStream}`,
            storageUrl: `http://127.0.0.1:${ports.simStorage}`,
            cdnUrl: `http://127.0.0.1:${ports.simCdn}`,
            libraryId: Number(env['bunny-sim'].BUNNY_LIBRARY_ID),
            streamKey: env.media.BUNNY_STREAM_KEY ?? '',
            readOnlyKey: env.edge.BUNNY_READ_ONLY_KEY ?? '',
            zone: env['bunny-sim'].BUNNY_STORAGE_ZONE ?? '',
            storageKey: env.media.BUNNY_STORAGE_KEY ?? '',
            pid: apps.get('bunny-sim')?.pid ?? null,
          },
      metricsUrl: `http://127.0.0.1:${ports.edgeMetrics}/metrics`,
      databaseUrl: services.databaseUrl,
      redisUrl: services.redisUrl,
      postgresPid: services.postgresPid,
      redisPid: services.redisPid,
      tokens,
      webhook: { url: webhookUrl(ports), token: env.edge.BUNNY_WEBHOOK_TOKEN ?? '' },
      ops: {
        url: `http://127.0.0.1:${ports.edge}/ops/queues`,
        user: env.edge.OPS_USER ?? 'ops',
        password: env.edge.OPS_PASSWORD ?? '',
      },
      dataDir,
    });
    await announceRunning(dataDir, {
      databaseUrl: services.databaseUrl,
      redis: { url: services.redisUrl, prefix: config.REDIS_PREFIX },
      media: { targets: [media.url], token: media.token },
      pipeline: pipelineSchema.parse(config),
    });
    return { describe, orgId: secrets.orgId, databaseUrl: services.databaseUrl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
