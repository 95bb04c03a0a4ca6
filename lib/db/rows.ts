import { getTableColumns, type SQL, sql, type Table } from 'drizzle-orm';
import type { Executor } from './client.ts';

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The columns of `table` by their names in the database, for a raw statement whose rows `decodeRow` reads. */
export const columnsOf = (table: Table): SQL =>
  sql.join(
    Object.keys(getTableColumns(table)).map((key) => sql.identifier(snake(key))),
    sql`, `,
  );

/** Reads a row of `table` out of a raw result, through the same column decoders that the query builder uses. */
export function decodeRow<T extends Table>(table: T, raw: Record<string, unknown>): T['$inferSelect'] {
  const row: Record<string, unknown> = {};
  for (const [key, column] of Object.entries(getTableColumns(table))) {
    const value = raw[snake(key)];
    row[key] = value === null || value === undefined ? null : column.mapFromDriverValue(value);
  }
  return row as T['$inferSelect'];
}

/** Runs a hand-written statement and answers its rows as they come from the driver. */
export async function rows<T extends Record<string, unknown>>(db: Executor, statement: SQL): Promise<T[]> {
  const { rows: found } = await db.execute(statement);
  return found as T[];
}

/** `now()` plus so many milliseconds, by the database's clock: the only clock that all processes share. */
export const inMs = (milliseconds: number) => sql`now() + ${milliseconds} * interval '1 millisecond'`;
