import { and, eq, type SQL, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import { type DeliveryState, TEST_EVENT } from '../domain/outbound.ts';
import { AppError } from '../errors.ts';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { rows } from './rows.ts';
import { webhookDeliveries } from './schema/index.ts';
import { type EndpointReach, findEndpoint } from './webhook-endpoints.ts';

export type Delivery = typeof webhookDeliveries.$inferSelect;

/** One line of the log: an answer's status, or the code of why there was none. */
export interface Attempt {
  at: Date;
  status: number | null;
  errorCode: string | null;
  durationMs: number;
}

/** Of a delivery that was replayed again and again the newest are shown. */
const MOST_ATTEMPTS = 20;

/** What was sent to an endpoint, newest first, with the attempts at it; two statements a page. Throws `not_found`. */
export async function listDeliveries(
  db: Executor,
  endpoint: EndpointReach,
  { state, limit, after }: PageRequest & { state: DeliveryState | null },
): Promise<Page<{ delivery: Delivery; attempts: Attempt[] }>> {
  await findEndpoint(db, endpoint);
  const { createdAt, id } = webhookDeliveries;
  const later: SQL | undefined =
    after === null
      ? undefined
      : sql`(${createdAt}, ${id}) < (select d.created_at, d.id from webhook_deliveries d where d.id = ${after})`;
  const attempts = sql<(Omit<Attempt, 'at'> & { at: string })[]>`(
    select coalesce(jsonb_agg(jsonb_build_object('at', a.at, 'status', a.status, 'errorCode', a.error_code, 'durationMs', a.duration_ms) order by a.id desc), '[]')
      from (select * from webhook_attempts where delivery_id = webhook_deliveries.id order by id desc limit ${MOST_ATTEMPTS}) a)`;
  const found = await db
    .select({ delivery: webhookDeliveries, attempts })
    .from(webhookDeliveries)
    .where(
      and(
        eq(webhookDeliveries.endpointId, endpoint.id),
        state === null ? undefined : eq(webhookDeliveries.state, state),
        later,
      ),
    )
    .orderBy(sql`${createdAt} desc, ${id} desc`)
    .limit(limit + 1);
  const page = toPage(found, limit, ({ delivery }) => delivery.id);
  const items = page.items.map(({ delivery, attempts }) => ({
    delivery,
    attempts: attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
  }));
  return { ...page, items };
}

const DISABLED = 'This endpoint is disabled: enable it first.';

/** Sends a test to an endpoint, whatever events it has chosen. Throws `not_found`, `conflict` where it is disabled. */
export async function createTest(db: Executor, reach: EndpointReach): Promise<Delivery> {
  const endpoint = await findEndpoint(db, reach);
  if (!endpoint.enabled) throw new AppError('conflict', { sentence: DISABLED });
  const test = { endpointId: endpoint.id, type: TEST_EVENT, data: { endpointId: endpoint.id } } as const;
  const [made] = await db
    .insert(webhookDeliveries)
    .values({ id: uuidv7(), ...test })
    .returning();
  if (!made) throw new Error('the test was not stored');
  return made;
}

/**
 * Sends a delivery again, delivered before or not, under the same id and from the beginning of the schedule. Throws
 * `not_found`, `conflict` where the endpoint is disabled or an attempt is under way.
 */
export async function replayDelivery(db: Executor, endpoint: EndpointReach, deliveryId: string): Promise<Delivery> {
  const { enabled } = await findEndpoint(db, endpoint);
  if (!enabled) throw new AppError('conflict', { sentence: DISABLED });
  const isThis = and(eq(webhookDeliveries.id, deliveryId), eq(webhookDeliveries.endpointId, endpoint.id));
  const isHeld = sql`${webhookDeliveries.leaseToken} is not null and ${webhookDeliveries.nextTryAt} > now()`;
  const [again] = await db
    .update(webhookDeliveries)
    .set({ state: 'pending', tries: 0, leaseToken: null, nextTryAt: sql`now()`, endedAt: null })
    .where(and(isThis, sql`not (${isHeld})`))
    .returning();
  if (again) return again;
  const known = await db.select({ id: webhookDeliveries.id }).from(webhookDeliveries).where(isThis);
  if (known.length === 0) throw new AppError('not_found');
  throw new AppError('conflict', { sentence: 'This is being delivered just now.' });
}

/** Deletes deliveries made more than `days` ago with their log, at most `limit`; answers how many. */
export async function pruneDeliveries(db: Executor, { days, limit }: { days: number; limit: number }): Promise<number> {
  const pruned = await rows(
    db,
    sql`delete from webhook_deliveries where id in (
          select id from webhook_deliveries where created_at < now() - ${days} * interval '1 day' order by created_at limit ${limit})
        returning 1 as one`,
  );
  return pruned.length;
}
