import { index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { createdAt, time } from './columns.ts';

/** What was answered to unsafe requests that carried an `Idempotency-Key`, so that a repetition is answered and not done. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    /** Organisation and `sub` of the token: nobody meets another's keys. */
    actor: text().notNull(),
    key: text().notNull(),
    /** SHA-256 hex of role, path and body: another request under a known key is a mistake. */
    request: text().notNull(),
    /** Null until the first request is answered. */
    status: integer(),
    contentType: text(),
    body: text(),
    createdAt: createdAt(),
    /** A request that has not ended by then has died: whether it was done is not known, and it is not done again. */
    takenUntil: time().notNull(),
  },
  (t) => [primaryKey({ columns: [t.actor, t.key] }), index('idempotency_keys_created_idx').on(t.createdAt)],
);
