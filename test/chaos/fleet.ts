import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { appEnv } from '../../apps/cli/stack/app-env.ts';
import { type AppName, type AppProcess, startApp } from '../../apps/cli/stack/app-process.ts';
import { ensureSecrets, type StackSecrets } from '../../apps/cli/stack/secrets.ts';
import type { Env } from '../../lib/config/env.ts';
import { migrate } from '../../lib/db/migrate.ts';
import type { Logger } from '../../lib/log.ts';
import { redisFromSetup } from '../../lib/services/setup-file.ts';
import { removeServiceData, type Services, startServices } from '../../lib/services/start-services.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { openSmallDisk, type SmallDisk } from './disk.ts';
import { EDGES, MEDIA, type Member, WORKERS } from './script.ts';

/** How long a worker's claim lasts; whoever wedges one waits at least for so long. */
export const LEASE_MS = 5_000;
const RENDERS_PER_WORKER = 2;
export const SLOTS = RENDERS_PER_WORKER * WORKERS.length;

/** Small limits, so that every deadline passes within a run; the proportions are those of the defaults. */
const LIMITS: Env = {
  RENDER_CONCURRENCY: String(RENDERS_PER_WORKER),
  RENDER_LEASE_MS: String(LEASE_MS),
  RENDER_SILENCE_MS: '8000',
  RENDER_BACKOFF_MS: '200',
  RENDER_BACKOFF_MAX_MS: '1500',
  RENDER_REDISPATCH_MS: '3000',
  SWEEP_MS: '500',
  TRANSCODE_DEADLINE_MS: '3000',
  TRANSCODE_POLL_MS: '1000',
  SHUTDOWN_MS: '5000',
  MEDIA_CONCURRENCY: '2',
  MEDIA_HEARTBEAT_MS: '500',
  MEDIA_DRAIN_MS: '2000',
  MEDIA_CACHE_MAX_BYTES: '48000000',
  SIM_FAST: 'true',
  SIM_TRANSCODE_CONCURRENCY: '2',
};

const STOP_DEADLINE_MS = 10_000;

const appOf = (member: Member | 'bunny-sim'): AppName =>
  member === 'bunny-sim' ? member : (member.replace(/-\d+$/, '') as AppName);

export interface Fleet {
  dataDir: string;
  logDir: string;
  secrets: StackSecrets;
  services: Services;
  /** Between the apps and Redis, to have that go away or fall silent. */
  redis: TcpProxy;
  disks: ReadonlyMap<Member, SmallDisk>;
  edgeUrls: readonly string[];
  /** What a command beside the apps needs, such as `bakehouse reconcile`. */
  commandEnv: Env;
  mediaEnv: Env;
  bunny: { streamUrl: string; storageUrl: string; libraryId: string; zone: string };
  /** Of the process that runs right now; null while it is being started again. */
  pidOf(member: Member): number | null;
  /** Stops it in order and starts it again, with these variables changed until the next restart. */
  restart(member: Member, change?: Env): Promise<void>;
  /** Stops everything; leaves the logs. */
  stop(): Promise<void>;
  /** Removes what the run kept on disk, but for the logs where they are wanted. Only after `stop`. */
  remove(options: { keepLogs: boolean }): Promise<void>;
}

/** Two edges, three workers, two media services and Bunny's stand-in, on a Postgres and a Redis of their own. */
export async function startFleet(log: Logger): Promise<Fleet> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bakehouse-chaos-'));
  // Postgres may have to run as another account, which must be able to pass through.
  await chmod(dataDir, 0o711);
  const logDir = join(dataDir, 'logs');
  const apps = new Map<Member | 'bunny-sim', AppProcess>();
  const closers: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    const members = [...EDGES, ...WORKERS, ...MEDIA, 'bunny-sim' as const];
    await Promise.all(members.map((member) => apps.get(member)?.stop(STOP_DEADLINE_MS)));
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const { PATH, FFMPEG_PATH, FFPROBE_PATH } = process.env;
    if (await redisFromSetup())
      throw new Error('The chaos run kills and flushes its Redis, so it needs one of its own: install redis-server.');
    const services = await startServices({ dataDir, path: PATH, durable: false, log });
    closers.push(() => services.stop());
    const redis = await startTcpProxy(services.redisUrl);
    closers.push(() => redis.close());
    await migrate(services.databaseUrl);
    const secrets = await ensureSecrets(dataDir);

    const disks = new Map<Member, SmallDisk>();
    for (const media of MEDIA) {
      const disk = await openSmallDisk(join(dataDir, media));
      closers.push(() => disk.remove());
      disks.set(media, disk);
    }
    const envs = await environments({
      dataDir,
      secrets,
      services: { ...services, redisUrl: redis.url },
      disks,
      given: { PATH, FFMPEG_PATH, FFPROBE_PATH },
    });
    const start = async (member: Member | 'bunny-sim', change: Env = {}) => {
      const env = { ...envs.of(member), ...change };
      apps.set(member, await startApp({ app: appOf(member), env, logDir: join(logDir, member), log }));
    };
    await Promise.all(['bunny-sim' as const, ...MEDIA, ...WORKERS, ...EDGES].map((member) => start(member)));

    return {
      ...{ dataDir, logDir, secrets, services, redis, disks, stop },
      edgeUrls: envs.edgeUrls,
      commandEnv: envs.of('worker-1'),
      mediaEnv: envs.of('media-1'),
      bunny: envs.bunny,
      pidOf: (member) => apps.get(member)?.pid ?? null,
      restart: async (member, change) => {
        await apps.get(member)?.stop(STOP_DEADLINE_MS);
        await start(member, change);
      },
      remove: async ({ keepLogs }) => {
        await removeServiceData(dataDir);
        for (const name of await readdir(dataDir))
          if (!keepLogs || join(dataDir, name) !== logDir)
            await rm(join(dataDir, name), { recursive: true, force: true });
        if (!keepLogs) await rm(dataDir, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Wired as `bakehouse up` wires them, each instance with ports, a name and folders of its own. */
async function environments(options: {
  dataDir: string;
  secrets: StackSecrets;
  services: Services;
  disks: ReadonlyMap<Member, SmallDisk>;
  given: Env;
}) {
  const port = () => getPort({ host: '127.0.0.1' });
  const sim = { simStream: await port(), simStorage: await port(), simCdn: await port() };
  const mediaPorts = new Map<Member, number>();
  for (const media of MEDIA) mediaPorts.set(media, await port());
  const edgePorts = new Map<Member, number>();
  for (const edge of EDGES) edgePorts.set(edge, await port());
  const firstEdge = edgePorts.get(EDGES[0]) ?? 0;
  const urlOf = (number: number) => `http://127.0.0.1:${number}`;
  const mediaUrls = [...mediaPorts.values()].map(urlOf).join(',');

  const of = (member: Member | 'bunny-sim'): Env => {
    const app = appOf(member);
    const folder = member === 'bunny-sim' ? undefined : options.disks.get(member)?.dir;
    const env = appEnv({
      given: {
        ...options.given,
        ...LIMITS,
        NODE_ENV: 'test',
        ...(folder && { MEDIA_CACHE_DIR: join(folder, 'cache'), MEDIA_WORK_DIR: join(folder, 'work') }),
      },
      secrets: options.secrets,
      services: options.services,
      ports: {
        ...sim,
        // Bunny knows one address; when that edge is dead, its webhooks are lost.
        edge: (member === 'bunny-sim' ? undefined : edgePorts.get(member)) ?? firstEdge,
        media: (member === 'bunny-sim' ? undefined : mediaPorts.get(member)) ?? 0,
        edgeMetrics: 0,
        workerMetrics: 0,
      },
      dataDir: options.dataDir,
      realBunny: false,
    })[app];
    return {
      ...env,
      ...(app === 'worker' && { WORKER_NAME: member }),
      ...((app === 'worker' || app === 'edge') && { MEDIA_URL: mediaUrls }),
    };
  };
  const edgeUrls = [...edgePorts.values()].map(urlOf);
  const { BUNNY_LIBRARY_ID: libraryId = '', BUNNY_STORAGE_ZONE: zone = '' } = of('bunny-sim');
  return {
    of,
    edgeUrls,
    bunny: { streamUrl: urlOf(sim.simStream), storageUrl: urlOf(sim.simStorage), libraryId, zone },
  };
}
