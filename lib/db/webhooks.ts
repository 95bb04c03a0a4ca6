import { and, eq, gt, inArray, isNull, lte, type SQL, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { inMs } from './rows.ts';
import { webhookEvents } from './schema/index.ts';

export type WebhookEvent = typeof webhookEvents.$inferSelect;

/** Keeps a verified delivery, before it is answered. */
export async function storeWebhookEvent(
  db: Executor,
  event: { videoGuid: string; libraryId: number; status: number; body: string; verifiedBy: 'signature' | 'token' },
): Promise<{ id: string }> {
  const [stored] = await db.insert(webhookEvents).values(event).returning({ id: webhookEvents.id });
  if (!stored) throw new Error('the webhook event was not stored');
  return stored;
}

export async function findUnappliedWebhook(db: Executor, id: string): Promise<WebhookEvent | null> {
  const [event] = await db
    .select()
    .from(webhookEvents)
    .where(and(eq(webhookEvents.id, id), isNull(webhookEvents.appliedAt)));
  return event ?? null;
}

/** Events whose time to be tried (again) has come, oldest first. */
export function dueWebhooks(db: Executor, limit: number): Promise<WebhookEvent[]> {
  return db
    .select()
    .from(webhookEvents)
    .where(and(isNull(webhookEvents.appliedAt), lte(webhookEvents.nextTryAt, sql`now()`)))
    .orderBy(webhookEvents.nextTryAt)
    .limit(limit);
}

export async function markWebhookApplied(db: Executor, id: string, outcome: string): Promise<void> {
  await db
    .update(webhookEvents)
    .set({ appliedAt: sql`now()`, outcome })
    .where(and(eq(webhookEvents.id, id), isNull(webhookEvents.appliedAt)));
}

/** Leaves an event for later: its video is not known yet, or the truth about it could not be asked. */
export async function postponeWebhook(
  db: Executor,
  id: string,
  options: { outcome: string; delayMs: number },
): Promise<void> {
  await db
    .update(webhookEvents)
    .set({ outcome: options.outcome, tries: sql`${webhookEvents.tries} + 1`, nextTryAt: inMs(options.delayMs) })
    .where(and(eq(webhookEvents.id, id), isNull(webhookEvents.appliedAt)));
}

/** Which events an operator means; everything given must hold. */
export interface WebhookFilter {
  ids?: readonly string[];
  videoGuid?: string;
  /** Only those that have not been applied. */
  unapplied?: boolean;
  /** Received at most so many milliseconds ago. */
  sinceMs?: number;
}

function conditionsOf({ ids, videoGuid, unapplied, sinceMs }: WebhookFilter): SQL | undefined {
  return and(
    ids && inArray(webhookEvents.id, [...ids]),
    videoGuid === undefined ? undefined : eq(webhookEvents.videoGuid, videoGuid),
    unapplied ? isNull(webhookEvents.appliedAt) : undefined,
    sinceMs === undefined
      ? undefined
      : sql`${webhookEvents.receivedAt} > now() - ${sinceMs} * interval '1 millisecond'`,
  );
}

/** Events that the filter selects, in the order in which they came, after the given one. */
export function selectWebhooks(
  db: Executor,
  filter: WebhookFilter,
  page: { after: string | null; limit: number },
): Promise<WebhookEvent[]> {
  return db
    .select()
    .from(webhookEvents)
    .where(and(conditionsOf(filter), page.after === null ? undefined : gt(webhookEvents.id, page.after)))
    .orderBy(webhookEvents.id)
    .limit(page.limit);
}

/** Has the replay sweep apply these events as if they had just come, applied before or not. */
export async function replayWebhooks(db: Executor, ids: readonly string[]): Promise<void> {
  await db
    .update(webhookEvents)
    .set({ appliedAt: null, outcome: null, tries: 0, nextTryAt: sql`now()` })
    .where(inArray(webhookEvents.id, [...ids]));
}
