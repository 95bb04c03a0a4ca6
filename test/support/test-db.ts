import { afterAll, beforeAll } from 'vitest';
import { type Database, openDatabase } from '../../lib/db/client.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

interface TestDb extends Database {
  readonly url: string;
  /** How many statements `work` needs, begin and commit included. */
  countStatements(work: () => Promise<unknown>): Promise<number>;
}

/** A migrated database for the tests of one file; call it at the top level of the file. */
export function useTestDatabase(): TestDb {
  let test: TestDatabase;
  let open: Database;
  let onStatement: ((text: string) => void) | undefined;
  beforeAll(async () => {
    test = await createTestDatabase();
    open = openDatabase(test.url, { max: 20, onStatement: (text) => onStatement?.(text) });
  });
  afterAll(async () => {
    await open?.close();
    await test?.drop();
  });
  return {
    get db() {
      return open.db;
    },
    get url() {
      return test.url;
    },
    ping: (ms) => open.ping(ms),
    connect: () => open.connect(),
    close: () => open.close(),
    countStatements: async (work) => {
      let count = 0;
      onStatement = () => {
        count += 1;
      };
      try {
        await work();
      } finally {
        onStatement = undefined;
      }
      return count;
    },
  };
}
