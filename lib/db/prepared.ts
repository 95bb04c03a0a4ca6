import type { PoolClient } from 'pg';

/** Statements per pool that have a name, or wait for their second use; of those that come later none gets one. */
const MOST = 500;

/**
 * Names the statements that a connection repeats, so that Postgres plans each once per connection instead of at every
 * use: planning a move costs it about as much as making it (a third of its CPU per render in `bench:queue`).
 *
 * A text is named from its second use on, and only so many are: texts that vary would fill the server's memory. A named
 * statement must keep its result's columns while migrations add some: a raw one lists its columns instead of `*`, or it
 * fails with "cached plan must not change result type" until its connection is closed.
 */
export function nameRepeated(): (client: PoolClient) => void {
  const names = new Map<string, string | undefined>();
  let named = 0;

  const nameOf = (text: string): string | undefined => {
    const name = names.get(text);
    if (name !== undefined) return name;
    if (names.has(text)) names.set(text, `s${++named}`);
    else if (names.size < MOST) names.set(text, undefined);
    return names.get(text);
  };

  return (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    client.query = ((first: unknown, ...rest: unknown[]) => {
      const name = isPlainStatement(first) ? nameOf(first.text) : undefined;
      return query(name === undefined ? first : { ...(first as object), name }, ...rest);
    }) as typeof client.query;
  };
}

/** As drizzle hands them over: no name of their own, and no cursor or the like, which submits itself. */
const isPlainStatement = (given: unknown): given is { text: string } =>
  typeof given === 'object' &&
  given !== null &&
  'text' in given &&
  typeof given.text === 'string' &&
  !('name' in given && given.name !== undefined) &&
  !('submit' in given);
