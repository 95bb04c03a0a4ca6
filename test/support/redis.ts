import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { inject } from 'vitest';
import { startRedis } from '../../lib/services/redis.ts';
import { silentLog } from './log.ts';
import { makeTempDir } from './temp-dir.ts';

/** The run's Redis with a prefix nobody else uses. Never FLUSHALL it: other files are working there. */
export function testRedis(): { url: string; prefix: string } {
  return { url: inject('redisUrl'), prefix: `test-${randomUUID()}` };
}

export interface PrivateRedis {
  url: string;
  /** Null while it is being started again. */
  readonly pid: number | null;
  stop(): Promise<void>;
}

/**
 * A Redis of the caller's own, to flush or to kill: killed, it is started again on the same port with its data after
 * about a quarter of a second. For longer outages put `startTcpProxy` before it.
 */
export async function startPrivateRedis(): Promise<PrivateRedis> {
  const dataDir = await makeTempDir();
  const { url, server } = await startRedis({ dataDir, path: process.env.PATH, log: silentLog });
  return {
    url,
    get pid() {
      return server.pid;
    },
    async stop() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
