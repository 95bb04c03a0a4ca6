/**
 * The driver's and the system's codes for a connection that is not there, and Postgres' own for a server that has no
 * connection to give (53300), took too long (57014), or is going down or coming up (57P…):
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const AWAY = new Set([
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EPIPE',
  '53300',
  '57014',
  '57P01',
  '57P02',
  '57P03',
]);

/**
 * Whether a failure says that Postgres cannot answer now, so that later it may, rather than that a statement is wrong.
 * Looks through what wraps it.
 */
export function isDatabaseAway(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string' && AWAY.has(at.code)) return true;
  }
  return false;
}
