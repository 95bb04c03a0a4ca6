import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../log.ts';
import { findOnPath } from './find-on-path.ts';
import { programVersion } from './program-version.ts';
import { type OwnService, superviseServer } from './supervise.ts';

/**
 * Starts a Redis (or Valkey) of our own whose data is kept under `dataDir`, listening on 127.0.0.1 only, with a password
 * made anew for every run. The caller holds the folder's lock.
 */
export async function startRedis(options: {
  dataDir: string;
  path: string | undefined;
  log: Logger;
}): Promise<OwnService> {
  const file = findRedis(options.path);
  const folder = join(options.dataDir, 'redis');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const password = randomBytes(24).toString('hex');
  const server = await superviseServer(
    (port) => ({
      name: 'Redis',
      file,
      // The configuration goes through standard input, because everybody may read a process's arguments.
      args: ['-'],
      input: redisConfig({ port, folder, password }),
      readyLine: /Ready to accept connections/,
      stopSignals: [
        { signal: 'SIGTERM', waitMs: 5_000 },
        { signal: 'SIGKILL', waitMs: 5_000 },
      ],
      recordFile: join(options.dataDir, 'redis.process.json'),
    }),
    options.log,
  );
  return { url: `redis://:${password}@127.0.0.1:${server.port}`, server };
}

function findRedis(path: string | undefined): string {
  const file = findOnPath(['redis-server', 'valkey-server'], path);
  if (file !== undefined) return file;
  throw new Error(
    'No Redis was found. Install one so that redis-server or valkey-server is on PATH (node scripts/setup.mjs tries to), or set REDIS_URL.',
  );
}

/** What the Redis that `startRedis` would start says of its version. Throws where there is none. */
export async function redisServerVersion(path: string | undefined): Promise<{ path: string; version: string }> {
  const file = findRedis(path);
  return { path: file, version: await programVersion(file) };
}

/**
 * noeviction because BullMQ's locks and jobs must never be dropped to make room (it only warns otherwise); the
 * append-only file with one fsync a second as BullMQ recommends, and no snapshots beside it.
 */
function redisConfig({ port, folder, password }: { port: number; folder: string; password: string }): string {
  return [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    `dir ${JSON.stringify(folder)}`,
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'maxmemory-policy noeviction',
    'daemonize no',
    '',
  ].join('\n');
}
