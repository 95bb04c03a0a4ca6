import { sql } from 'drizzle-orm';
import { bigserial, boolean, check, index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import type { DeliveryState, DeliveryType, OutboundEvent } from '../../domain/outbound.ts';
import { createdAt, id, time, updatedAt } from './columns.ts';
import { organisations } from './exercises.ts';

/** Where a clinic wants to be told of what. Its secret is not here: it is derived from this id and `secretVersion`. */
export const webhookEndpoints = pgTable(
  'webhook_endpoints',
  {
    id: id(),
    orgId: uuid()
      .notNull()
      .references(() => organisations.id, { onDelete: 'cascade' }),
    url: text().notNull(),
    description: text(),
    events: text().array().$type<OutboundEvent[]>().notNull(),
    enabled: boolean().notNull().default(true),
    /** Why it was disabled where nobody did it by hand. */
    disabledReason: text({ enum: ['gone', 'failing'] }),
    secretVersion: integer().notNull().default(1),
    /** When its last rotations were, oldest first: each secret that one replaced signs for a while. */
    secretRotations: time().array().notNull().default(sql`'{}'`),
    /** Since when every attempt has failed; null after a success. */
    failingSince: time(),
    createdBy: text().notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    index('webhook_endpoints_org_idx').on(t.orgId, t.id),
    check('webhook_endpoints_reason_known', sql`${t.disabledReason} in ('gone', 'failing')`),
    check('webhook_endpoints_reason_only_disabled', sql`not ${t.enabled} or ${t.disabledReason} is null`),
  ],
);

/**
 * One event for one endpoint: written with the transition that it tells of, and the outbox of what is sent. Its id is the
 * `webhook-id`. Without a reference to the endpoint: a render's end must neither fail nor wait because somebody deletes
 * one; what is left of that is pruned.
 */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    id: id(),
    endpointId: uuid().notNull(),
    type: text().$type<DeliveryType>().notNull(),
    data: jsonb().$type<Record<string, unknown>>().notNull(),
    state: text().$type<DeliveryState>().notNull().default('pending'),
    /** Attempts that failed since it was made, or last replayed: the place in the schedule. */
    tries: integer().notNull().default(0),
    /** Held by a worker until `nextTryAt`; then it is due again, whoever held it. */
    leaseToken: uuid(),
    nextTryAt: time().notNull().defaultNow(),
    createdAt: createdAt(),
    endedAt: time(),
  },
  (t) => [
    index('webhook_deliveries_due_idx').on(t.endpointId, t.nextTryAt).where(sql`${t.state} = 'pending'`),
    index('webhook_deliveries_held_idx').on(t.endpointId, t.nextTryAt).where(sql`${t.leaseToken} is not null`),
    index('webhook_deliveries_list_idx').on(t.endpointId, t.createdAt, t.id),
    index('webhook_deliveries_created_idx').on(t.createdAt),
    check('webhook_deliveries_state_known', sql`${t.state} in ('pending', 'delivered', 'failed')`),
    check('webhook_deliveries_held_is_pending', sql`${t.leaseToken} is null or ${t.state} = 'pending'`),
  ],
);

/** The log of what was tried: an answer's status, or why there was none. Append-only. */
export const webhookAttempts = pgTable(
  'webhook_attempts',
  {
    id: bigserial({ mode: 'number' }).primaryKey(),
    deliveryId: uuid()
      .notNull()
      .references(() => webhookDeliveries.id, { onDelete: 'cascade' }),
    /** The HTTP status; null where nothing was answered. */
    status: integer(),
    /** A code of the table of errors; null for a success. */
    errorCode: text(),
    durationMs: integer().notNull(),
    at: createdAt(),
  },
  (t) => [index('webhook_attempts_delivery_idx').on(t.deliveryId, t.id)],
);
