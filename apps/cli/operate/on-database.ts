import { loadCliConfig } from '../../../lib/config/cli.ts';
import { type Db, openDatabase } from '../../../lib/db/client.ts';
import { findInstallation, type Installation } from '../stack/running.ts';

export const DATA_DIR_OPTION = [
  '--data-dir <folder>',
  'of the running installation that it is for, where DATABASE_URL is not set (default BAKEHOUSE_DATA_DIR or .bakehouse/data)',
] as const;

/** Runs `work` on the installation's database and lets go of it, however the work ends. */
export async function onDatabase<T>(
  dataDir: string | undefined,
  work: (db: Db, installation: Installation) => Promise<T>,
): Promise<T> {
  const installation = await findInstallation(loadCliConfig(), dataDir);
  const database = openDatabase(installation.databaseUrl, { max: 2, appName: 'bakehouse-cli' });
  try {
    return await work(database.db, installation);
  } finally {
    await database.close();
  }
}
