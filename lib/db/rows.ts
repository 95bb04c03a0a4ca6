import { type Column, getTableColumns, type SQL, sql, type Table } from 'drizzle-orm';
import type { Executor } from './client.ts';

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

interface Named {
  key: string;
  name: string;
  column: Column;
}

/** What is asked of a table at every move, made once: to put three dozen identifiers together costs each time. */
const named = new WeakMap<Table, { columns: Named[]; list: SQL }>();

function namesOf(table: Table): { columns: Named[]; list: SQL } {
  const known = named.get(table);
  if (known) return known;
  const columns = Object.entries(getTableColumns(table)).map(([key, column]) => ({ key, name: snake(key), column }));
  const made = { columns, list: sql.raw(columns.map(({ name }) => `"${name}"`).join(', ')) };
  named.set(table, made);
  return made;
}

/** The columns of `table` by their names in the database, for a raw statement whose rows `decodeRow` reads. */
export const columnsOf = (table: Table): SQL => namesOf(table).list;

/** Reads a row of `table` out of a raw result, through the same column decoders that the query builder uses. */
export function decodeRow<T extends Table>(table: T, raw: Record<string, unknown>): T['$inferSelect'] {
  const row: Record<string, unknown> = {};
  for (const { key, name, column } of namesOf(table).columns) {
    const value = raw[name];
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
