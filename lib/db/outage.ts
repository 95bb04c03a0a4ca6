import { DrizzleQueryError } from 'drizzle-orm';

/**
 * The system's codes for a connection that cannot be made or has broken, and Postgres' own for a server that has no
 * connection to give (53300), took too long (57014), or gave up one of two that waited for each other (40001, 40P01):
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const AWAY = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  '40001',
  '40P01',
  '53300',
  '57014',
]);

/** 08: connection exceptions; 57P: the server is going down or coming up. */
const AWAY_CLASS = /^(08|57P)/;

/** What node-postgres says without a code when a connection breaks, is not to be had in time, or falls silent. */
const DRIVER_SAYS =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error)/;

/**
 * Whether a failure says that Postgres cannot answer now, so that later it may, rather than that a statement is wrong.
 * Looks through what wraps it.
 */
export function isDatabaseAway(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at && typeof at.code === 'string' ? at.code : '';
    if (AWAY.has(code) || AWAY_CLASS.test(code) || DRIVER_SAYS.test(at.message)) return true;
  }
  return false;
}

/** Postgres gave up this transaction so that another could go on: the same again will do. */
export function isConflict(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && (at.code === '40P01' || at.code === '40001')) return true;
  }
  return false;
}

/** The work, and once more where Postgres gave it up for a conflict. */
export async function retryConflict<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isConflict(error)) throw error;
    return work();
  }
}

/**
 * What Postgres, or the system, said of a statement that failed; undefined for any other error. The message of such an
 * error itself is the statement with its parameters: nothing for an operator, and not for a log.
 */
export function whyStatementFailed(error: unknown): string | undefined {
  if (!(error instanceof DrizzleQueryError)) return undefined;
  // A name with several addresses fails once for each.
  const causes = error.cause instanceof AggregateError ? error.cause.errors : [error.cause];
  return causes.map((cause: unknown) => (cause instanceof Error ? cause.message : String(cause))).join('; ');
}
