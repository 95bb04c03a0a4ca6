import { and, type Column, eq, getTableColumns, isNull, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { inMs, rows } from './rows.ts';
import { idempotencyKeys } from './schema/index.ts';

export interface KeyedRequest {
  actor: string;
  key: string;
  /** SHA-256 hex of what is asked. */
  request: string;
}

export interface KeptAnswer {
  status: number;
  contentType: string;
  body: string;
}

export type Taken =
  /** The request is to be done, and its answer kept. */
  | { kind: 'first' }
  /** It was done already. */
  | { kind: 'answered'; answer: KeptAnswer }
  /** It is under way, for so many milliseconds at most. */
  | { kind: 'under-way'; leftMs: number }
  /** It was begun, and its time is up: it may have been done or not. */
  | { kind: 'unknown' }
  /** The key was used for another request. */
  | { kind: 'reused' };

/**
 * Takes a key for a request that is answered, or the key given up, within `takenMs`; of many at once exactly one is the first,
 * and there is no second for as long as the key is known.
 */
export async function takeKey(db: Executor, { actor, key, request }: KeyedRequest, takenMs: number): Promise<Taken> {
  const taken = await rows(
    db,
    sql`insert into idempotency_keys (actor, key, request, taken_until) values (${actor}, ${key}, ${request}, ${inMs(takenMs)})
        on conflict (actor, key) do nothing returning 1`,
  );
  if (taken.length > 0) return { kind: 'first' };
  const [known] = await db
    .select({ ...getTableColumns(idempotencyKeys), leftMs: millisecondsUntil(idempotencyKeys.takenUntil) })
    .from(idempotencyKeys)
    .where(and(eq(idempotencyKeys.actor, actor), eq(idempotencyKeys.key, key)));
  // Given up between the two statements: whoever comes again finds it free.
  if (!known) return { kind: 'under-way', leftMs: 0 };
  if (known.request !== request) return { kind: 'reused' };
  if (known.status === null)
    return known.leftMs > 0 ? { kind: 'under-way', leftMs: known.leftMs } : { kind: 'unknown' };
  return {
    kind: 'answered',
    answer: { status: known.status, contentType: known.contentType ?? 'application/json', body: known.body ?? '' },
  };
}

const millisecondsUntil = (time: Column) => sql<number>`(extract(epoch from ${time} - now()) * 1000)::float8`;

/** Keeps the answer for all who come again with this key. */
export async function keepAnswer(db: Executor, { actor, key }: KeyedRequest, answer: KeptAnswer): Promise<void> {
  await db
    .update(idempotencyKeys)
    .set(answer)
    .where(and(eq(idempotencyKeys.actor, actor), eq(idempotencyKeys.key, key), isNull(idempotencyKeys.status)));
}

/** Gives a key up whose request has ended and came to nothing, so that it may be tried again. */
export async function giveUpKey(db: Executor, { actor, key }: KeyedRequest): Promise<void> {
  await db
    .delete(idempotencyKeys)
    .where(and(eq(idempotencyKeys.actor, actor), eq(idempotencyKeys.key, key), isNull(idempotencyKeys.status)));
}
