import { drizzle } from 'drizzle-orm/node-postgres';
import { Pool, type PoolClient } from 'pg';
import { nameRepeated } from './prepared.ts';
import * as schema from './schema/index.ts';

export interface Database {
  db: Db;
  /** A connection of one's own, for what must stay on one (advisory locks); give it back with `release`. */
  connect(): Promise<PoolClient>;
  /** Answers within `timeoutMs` or throws: the readiness check. */
  ping(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

export type Db = ReturnType<typeof drizzleOn>;
/** A transaction, or the database itself: what a repository function runs on. */
export type Executor = Pick<Db, 'execute' | 'select' | 'insert' | 'update' | 'delete'>;

const drizzleOn = (pool: Pool, onStatement?: (text: string) => void) =>
  drizzle(pool, { schema, casing: 'snake_case', ...(onStatement && { logger: { logQuery: onStatement } }) });

export interface DatabaseOptions {
  /** The most connections at once; nothing is dialled before the first query. */
  max?: number;
  appName?: string;
  /**
   * Bounds every statement, so that nothing waits for a lock for ever; and, with twice that, how long a transaction may
   * say nothing.
   */
  statementTimeoutMs?: number;
  /** Told of every statement, for tests that count them. */
  onStatement?: (text: string) => void;
}

/** How much longer than the server's own limit the client waits: by then the server is not answering at all. */
const SILENT_SERVER_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Opens a pool. A connection that breaks fails the statements on it and nothing else; the next ones get a new
 * connection.
 */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const statementTimeoutMs = options.statementTimeoutMs ?? 15_000;
  const pool = new Pool({
    connectionString: url,
    max: options.max ?? 10,
    application_name: options.appName ?? 'bakehouse',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    // The server cannot enforce its limit where the network swallows everything.
    query_timeout: statementTimeoutMs + SILENT_SERVER_MS,
    // A process that is frozen in a transaction (or vanished with its machine) would keep its rows locked, and a render
    // that is locked cannot be claimed. Longer than what reconcile does at Bunny while it holds some.
    idle_in_transaction_session_timeout: 2 * statementTimeoutMs,
    keepAlive: true,
  });
  // A broken connection emits this besides failing its statements; without a listener Node would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  pool.on('connect', nameRepeated());
  return {
    db: drizzleOn(pool, options.onStatement),
    connect: () => pool.connect(),
    ping: async (timeoutMs) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`Postgres did not answer within ${timeoutMs} ms`)), timeoutMs);
      });
      const asked = pool.query('select 1');
      // Nobody waits for an answer that comes too late.
      asked.catch(() => {});
      try {
        await Promise.race([asked, late]);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => pool.end(),
  };
}
