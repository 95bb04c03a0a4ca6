import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate as drizzleMigrate } from 'drizzle-orm/node-postgres/migrator';
import { Client } from 'pg';
import { PROJECT_ROOT } from '../project-root.ts';

/** Serialises migrations of several processes that start at once; any constant not used elsewhere will do. */
const MIGRATION_LOCK = 0x62616b65;

/** Brings the database to the newest schema; safe to run from several processes at once. */
export async function migrate(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  // The failed statement says it too; without a listener Node would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await drizzleMigrate(drizzle(client), {
      migrationsFolder: fileURLToPath(new URL('drizzle', PROJECT_ROOT)),
    });
  } finally {
    await client.end();
  }
}
