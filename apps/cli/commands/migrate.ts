import { Command } from 'commander';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { migrate } from '../../../lib/db/migrate.ts';
import { Refusal } from '../failure.ts';

export const migrateCommand = () =>
  new Command('migrate').description('bring the database of DATABASE_URL to the newest schema').action(async () => {
    const { DATABASE_URL } = loadCliConfig();
    if (!DATABASE_URL) throw new Refusal('configuration', 'DATABASE_URL is not set: the database to migrate.');
    await migrate(DATABASE_URL);
    process.stdout.write('The database has the newest schema.\n');
  });
