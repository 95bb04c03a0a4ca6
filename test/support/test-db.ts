import { afterAll, beforeAll } from 'vitest';
import { type Database, openDatabase } from '../../lib/db/client.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

/** A migrated database for the tests of one file; call it at the top level of the file. */
export function useTestDatabase(): Database & { url: string } {
  let test: TestDatabase;
  let open: Database;
  beforeAll(async () => {
    test = await createTestDatabase();
    open = openDatabase(test.url, { max: 20 });
  });
  afterAll(async () => {
    await open?.close();
    await test?.drop();
  });
  return {
    get db() {
      return open.db;
    },
    get sql() {
      return open.sql;
    },
    get url() {
      return test.url;
    },
    ping: (ms) => open.ping(ms),
    close: () => open.close(),
  };
}
