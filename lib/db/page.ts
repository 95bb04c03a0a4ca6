/** One page of a list that is ordered by falling id, which is newest first: ids are time-ordered. */
export interface PageRequest {
  limit: number;
  /** The last id of the page before; null for the first page. */
  after: string | null;
}

export interface Page<T> {
  items: T[];
  /** What to pass as `after` for the next page; null where this is the last. */
  next: string | null;
}

/** Makes a page of rows that were read with a limit of one more than asked for. */
export function toPage<T>(rows: readonly T[], limit: number, idOf: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? idOf(last) : null };
}
