import type { Database } from './client.ts';

/**
 * Runs `work` if no other process holds the lock of this name, and not at all otherwise (null). The lock belongs to
 * one connection, so a process that dies lets go of it.
 */
export async function withLock<T>({ sql }: Database, name: string, work: () => Promise<T>): Promise<T | null> {
  const connection = await sql.reserve();
  try {
    const [row] = await connection`select pg_try_advisory_lock(hashtextextended(${name}, 0)) as locked`;
    if (!row?.locked) return null;
    try {
      return await work();
    } finally {
      await connection`select pg_advisory_unlock(hashtextextended(${name}, 0))`;
    }
  } finally {
    connection.release();
  }
}
