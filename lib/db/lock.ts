import type { Database } from './client.ts';

/** How long a holder may be silent. Shorter than what anybody waits for, longer than any pause of a process that is well. */
const SILENT_MS = 10_000;

/**
 * Runs `work` if no other process holds the lock of this name, and not at all otherwise (null). The lock belongs to
 * one connection, so a process that dies, or loses that connection, lets go of it. One that is frozen keeps its
 * connection open: Postgres ends that when nothing was heard on it for `silentMs`. `work` may then run on when the
 * process wakes, beside another holder's, so it must be safe to repeat.
 */
export async function withLock<T>(
  database: Pick<Database, 'connect'>,
  name: string,
  work: () => Promise<T>,
  { silentMs = SILENT_MS } = {},
): Promise<T | null> {
  const connection = await database.connect();
  let broken = true;
  let pulse: NodeJS.Timeout | undefined;
  try {
    const endsAfter = (ms: number) =>
      connection.query("select set_config('idle_session_timeout', $1, false)", [String(ms)]);
    // In one statement: frozen between two, a process would keep the lock for as long as it is frozen.
    const { rows } = await connection.query(
      `select set_config('idle_session_timeout', $2, false), pg_try_advisory_lock(hashtextextended($1, 0)) as locked`,
      [name, String(silentMs)],
    );
    if (rows[0]?.locked !== true) {
      await endsAfter(0);
      broken = false;
      return null;
    }
    let beat = Promise.resolve<unknown>(undefined);
    pulse = setInterval(() => {
      // Where it fails the connection is gone, and with it the lock; that shows below.
      beat = beat.then(() => connection.query('select 1')).catch(() => undefined);
    }, silentMs / 3);
    const result = await work();
    clearInterval(pulse);
    await beat;
    await connection.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name]);
    await endsAfter(0);
    broken = false;
    return result;
  } finally {
    clearInterval(pulse);
    // Closing the connection is the surest way to give up the lock where unlocking did not come about.
    connection.release(broken);
  }
}
