import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { OutboundEvent } from '../domain/outbound.ts';
import { AppError } from '../errors.ts';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { columnsOf, decodeRow, rows } from './rows.ts';
import { webhookEndpoints } from './schema/index.ts';

export type WebhookEndpoint = typeof webhookEndpoints.$inferSelect;

/** What an endpoint is found by. */
export interface EndpointReach {
  id: string;
  /** Null: a superadmin, who reaches every organisation's. */
  orgId: string | null;
}

/** Every event of a clinic is sent to each of them. */
const MOST_ENDPOINTS = 20;

const inReach = ({ id, orgId }: EndpointReach) =>
  and(eq(webhookEndpoints.id, id), orgId === null ? undefined : eq(webhookEndpoints.orgId, orgId));

const found = ([endpoint]: WebhookEndpoint[]): WebhookEndpoint => {
  if (!endpoint) throw new AppError('not_found');
  return endpoint;
};

/** Throws `conflict` where the organisation has as many as it may have. */
export async function createEndpoint(
  db: Executor,
  input: { orgId: string; url: string; description: string | null; events: OutboundEvent[]; createdBy: string },
): Promise<WebhookEndpoint> {
  const { orgId, url, description, events, createdBy } = input;
  const [made] = await rows(
    db,
    sql`insert into webhook_endpoints (id, org_id, url, description, events, created_by)
        select ${uuidv7()}::uuid, ${orgId}::uuid, ${url}, ${description}, ${sql.param(events)}::text[], ${createdBy}
         where (select count(*) from webhook_endpoints where org_id = ${orgId}) < ${MOST_ENDPOINTS}
        returning ${columnsOf(webhookEndpoints)}`,
  );
  if (!made) throw new AppError('conflict', { sentence: `A clinic has at most ${MOST_ENDPOINTS} webhook endpoints.` });
  return decodeRow(webhookEndpoints, made);
}

export async function listEndpoints(
  db: Executor,
  { orgId, limit, after }: PageRequest & { orgId: string | null },
): Promise<Page<WebhookEndpoint>> {
  const listed = await db
    .select()
    .from(webhookEndpoints)
    .where(
      and(
        orgId === null ? undefined : eq(webhookEndpoints.orgId, orgId),
        after === null ? undefined : lt(webhookEndpoints.id, after),
      ),
    )
    .orderBy(desc(webhookEndpoints.id))
    .limit(limit + 1);
  return toPage(listed, limit, ({ id }) => id);
}

/** Throws `not_found`. */
export const findEndpoint = async (db: Executor, reach: EndpointReach): Promise<WebhookEndpoint> =>
  found(await db.select().from(webhookEndpoints).where(inReach(reach)));

/**
 * Changes what is given. A new address begins with a clean record, and so does one that is enabled again; what was
 * pending when it was disabled is sent then. Throws `not_found`.
 */
export async function updateEndpoint(
  db: Executor,
  reach: EndpointReach,
  changes: {
    url?: string | undefined;
    description?: string | null | undefined;
    events?: OutboundEvent[] | undefined;
    enabled?: boolean | undefined;
  },
): Promise<WebhookEndpoint> {
  const cleared = changes.url !== undefined || changes.enabled === true ? { failingSince: null } : {};
  const reason = changes.enabled === undefined ? {} : { disabledReason: null };
  const values = { ...changes, ...cleared, ...reason, updatedAt: new Date() };
  return found(await db.update(webhookEndpoints).set(values).where(inReach(reach)).returning());
}

/** Deletes it; its deliveries, which nobody can reach from then on, are pruned in their time. Throws `not_found`. */
export async function deleteEndpoint(db: Executor, reach: EndpointReach): Promise<void> {
  found(await db.delete(webhookEndpoints).where(inReach(reach)).returning());
}

/** How long a secret that was replaced goes on signing: time for a receiver to learn the new one. */
const OVERLAP_MS = 24 * 3_600_000;

const overlapBegan = sql`now() - ${OVERLAP_MS} * interval '1 millisecond'`;

/** How many of the secrets before the current one still sign, for an endpoint `w`. */
export const previousSigning: SQL = sql`(select count(*)::int from unnest(w.secret_rotations) rotated_at where rotated_at > ${overlapBegan})`;

/** Each that was replaced within `OVERLAP_MS` makes a signature more in the header of every delivery. */
const MOST_SIGNING = 5;

/**
 * Begins a new secret; each that was replaced goes on signing for `OVERLAP_MS`. Throws `not_found`, and
 * `too_many_requests` where `MOST_SIGNING` still do.
 */
export async function rotateSecret(db: Executor, reach: EndpointReach): Promise<WebhookEndpoint> {
  const { secretVersion, secretRotations: rotations } = webhookEndpoints;
  const kept = sql`${rotations}[greatest(1, cardinality(${rotations}) - ${MOST_SIGNING - 2}::int):]`;
  const [rotated] = await db
    .update(webhookEndpoints)
    .set({ secretVersion: sql`${secretVersion} + 1`, secretRotations: sql`${kept} || now()` })
    .where(
      and(
        inReach(reach),
        // No such element, no bound.
        sql`coalesce(${rotations}[cardinality(${rotations}) - ${MOST_SIGNING - 1}::int] <= ${overlapBegan}, true)`,
      ),
    )
    .returning();
  if (rotated) return rotated;
  const { secretRotations } = await findEndpoint(db, reach);
  const frees = (secretRotations.at(-MOST_SIGNING)?.getTime() ?? 0) + OVERLAP_MS;
  throw new AppError('too_many_requests', {
    sentence: `A secret is replaced at most ${MOST_SIGNING} times in 24 hours, because each goes on signing for so long.`,
    retryAfterMs: Math.max(1_000, frees - Date.now()),
  });
}
