import { index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { createdAt, time } from './columns.ts';

/** What was answered to unsafe requests that carried an `Idempotency-Key`, so that a repetition is answered and not done. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    /** Organisation and `sub` of the token: nobody meets another's keys. */
    actor: text().notNull(),
    key: text().notNull(),
    /** SHA-256 hex of method, path and body: another request under a known key is a mistake. */
    request: text().notNull(),
    /** Null while the first request is under way. */
    status: integer(),
    contentType: text(),
    body: text(),
    createdAt: createdAt(),
    /** A request that has not ended by then has died, and the next one with this key may take its place. */
    takenUntil: time().notNull(),
  },
  (t) => [primaryKey({ columns: [t.actor, t.key] }), index('idempotency_keys_created_idx').on(t.createdAt)],
);
