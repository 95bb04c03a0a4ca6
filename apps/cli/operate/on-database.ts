import { createAnnouncer } from '../../../lib/announce.ts';
import { openStatusBell } from '../../../lib/cache/status-cache.ts';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { type Database, type Db, openDatabase } from '../../../lib/db/client.ts';
import { createLogger } from '../../../lib/log.ts';
import { findInstallation, type Installation } from '../stack/running.ts';

export const DATA_DIR_OPTION = [
  '--data-dir <folder>',
  'of the running installation that it is for, where DATABASE_URL is not set (default BAKEHOUSE_DATA_DIR or .bakehouse/data)',
] as const;

export interface Operating {
  installation: Installation;
  /** What `db` belongs to. */
  database: Database;
  /** Whoever waits for these renders hears of them shortly, where Redis is there. */
  onChanged: (renderIds: readonly string[]) => void;
}

/** One connection holds a lock, one announces, the others do the work. */
const CONNECTIONS = 4;
/** What the end of a command waits for Redis, the connection included: who is not told looks again by then or soon after. */
const RING_MS = 2_000;

/**
 * Runs `work` on the installation's database, says what it has changed, and lets go of everything, however the work ends.
 */
export async function onDatabase<T>(
  dataDir: string | undefined,
  work: (db: Db, operating: Operating) => Promise<T>,
): Promise<T> {
  const installation = await findInstallation(loadCliConfig(), dataDir);
  const database = openDatabase(installation.databaseUrl, { max: CONNECTIONS, appName: 'bakehouse-cli' });
  const log = createLogger('bakehouse', 'silent');
  const { redis } = installation;
  const bell =
    redis && openStatusBell({ redisUrl: redis.url, prefix: redis.prefix, deadlineMs: RING_MS, lazy: true, log });
  const announcer = bell && createAnnouncer(database.db, bell, log);
  try {
    return await work(database.db, {
      installation,
      database,
      onChanged: (renders) => announcer?.changedSoon({ renders }),
    });
  } finally {
    await announcer?.close();
    bell?.close();
    await database.close();
  }
}
