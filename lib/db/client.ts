import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import * as schema from './schema/index.ts';

export interface Database {
  db: Db;
  /** The driver itself, for what must hold one connection (advisory locks). */
  sql: postgres.Sql;
  /** Answers within `timeoutMs` or throws: the readiness check. */
  ping(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

export type Db = ReturnType<typeof connect>['db'];
/** A transaction, or the database itself: what a repository function runs on. */
export type Executor = Pick<Db, 'execute' | 'select' | 'insert' | 'update' | 'delete'>;

function connect(sql: postgres.Sql) {
  return { db: drizzle(sql, { schema, casing: 'snake_case' }) };
}

/**
 * Opens a pool of at most `max` connections; nothing is dialled before the first query.
 * `statement_timeout` bounds every statement, so that a request never waits for a lock for ever.
 */
export function openDatabase(
  url: string,
  options: { max?: number; appName?: string; statementTimeoutMs?: number } = {},
): Database {
  const sql = postgres(url, {
    max: options.max ?? 10,
    connect_timeout: 5,
    // The default back-off grows to 20 s; a restarted Postgres should be found within a heartbeat.
    backoff: (retries) => Math.min(2, 0.2 * 2 ** retries),
    connection: {
      application_name: options.appName ?? 'bakehouse',
      statement_timeout: options.statementTimeoutMs ?? 15_000,
    },
    onnotice: () => {},
  });
  const { db } = connect(sql);
  return {
    db,
    sql,
    ping: async (timeoutMs) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`Postgres did not answer within ${timeoutMs} ms`)), timeoutMs);
      });
      try {
        await Promise.race([sql`select 1`, late]);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => sql.end({ timeout: 5 }),
  };
}
