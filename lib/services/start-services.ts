import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Logger } from '../log.ts';
import { lockFolder } from './folder-lock.ts';
import { startPostgres } from './postgres.ts';
import { removePostgresHome } from './postgres-home.ts';
import { startRedis } from './redis.ts';
import type { Service } from './supervise.ts';

export interface ServicesOptions {
  /** Where our own servers keep their data; at most one run at a time. */
  dataDir: string;
  /** Servers that already exist, used as they are. */
  databaseUrl?: string | undefined;
  redisUrl?: string | undefined;
  /** PATH, to find redis-server on. */
  path: string | undefined;
  /** Start from nothing: what earlier runs kept in `dataDir` is removed first. */
  fresh?: boolean;
  /** False gives up surviving a power cut, though not the death of a server, for speed; for tests. */
  durable?: boolean;
  log: Logger;
}

export interface Services {
  /** Hold passwords: not for logs. They stay the same however often a server is started again. */
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Of the servers running right now; null for one that is not ours or that is being started again. */
  readonly postgresPid: number | null;
  readonly redisPid: number | null;
  stop(): Promise<void>;
}

/**
 * Resolves when Postgres and Redis take connections: the given ones are taken on trust, the others are our own
 * children, started again whenever they die and gone when this process is. Rejects, with nothing left running, where
 * the folder is in use or a server cannot be started.
 */
export async function startServices(options: ServicesOptions): Promise<Services> {
  const dataDir = resolve(options.dataDir);
  const lock = await lockFolder(dataDir);
  try {
    if (options.fresh) await removeServiceData(dataDir);
    const [postgres, redis] = await allOrNothing(
      options.databaseUrl
        ? given(options.databaseUrl)
        : startPostgres({ dataDir, durable: options.durable ?? true, log: options.log }),
      options.redisUrl ? given(options.redisUrl) : startRedis({ dataDir, path: options.path, log: options.log }),
    );
    return {
      databaseUrl: postgres.url,
      redisUrl: redis.url,
      get postgresPid() {
        return postgres.server?.pid ?? null;
      },
      get redisPid() {
        return redis.server?.pid ?? null;
      },
      async stop() {
        try {
          await Promise.all([postgres.server?.stop(), redis.server?.stop()]);
        } finally {
          await lock.release();
        }
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

const given = async (url: string): Promise<Service> => ({ url, server: null });

async function allOrNothing(...starting: [Promise<Service>, Promise<Service>]): Promise<[Service, Service]> {
  const outcomes = await Promise.allSettled(starting);
  if (outcomes.some((outcome) => outcome.status === 'rejected')) {
    await Promise.all(outcomes.map((outcome) => outcome.status === 'fulfilled' && outcome.value.server?.stop()));
  }
  return Promise.all(starting);
}

/** Removes what the servers keep for this data folder, wherever that is. None may be running there. */
export async function removeServiceData(dataDir: string): Promise<void> {
  await removePostgresHome(dataDir);
  await rm(join(dataDir, 'redis'), { recursive: true, force: true });
}
