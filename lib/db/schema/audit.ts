import { index, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, id } from './columns.ts';

/**
 * Who did what that others may ask about later. Append-only, and without references: the trace of a thing outlives the
 * thing.
 */
export const auditLog = pgTable(
  'audit_log',
  {
    id: id(),
    /** The `sub` of the token. */
    actor: text().notNull(),
    role: text().notNull(),
    /** The actor's; null for those who belong to none. */
    orgId: uuid(),
    action: text().notNull(),
    subject: uuid().notNull(),
    detail: jsonb().$type<Record<string, unknown>>().notNull().default({}),
    at: createdAt(),
  },
  (t) => [index('audit_log_subject_idx').on(t.subject, t.id), index('audit_log_org_idx').on(t.orgId, t.id)],
);
