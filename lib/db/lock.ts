import type { Database } from './client.ts';

/**
 * Runs `work` if no other process holds the lock of this name, and not at all otherwise (null). The lock belongs to
 * one connection, so a process that dies, or loses that connection, lets go of it.
 */
export async function withLock<T>(database: Database, name: string, work: () => Promise<T>): Promise<T | null> {
  const connection = await database.connect();
  let broken = true;
  try {
    const { rows } = await connection.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as locked', [name]);
    if (rows[0]?.locked !== true) {
      broken = false;
      return null;
    }
    const result = await work();
    await connection.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name]);
    broken = false;
    return result;
  } finally {
    // Closing the connection is the surest way to give up the lock where unlocking did not come about.
    connection.release(broken);
  }
}
