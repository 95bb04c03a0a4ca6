import { randomUUID } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { inMs, rows } from './rows.ts';
import { webhookDeliveries, type webhookEndpoints } from './schema/index.ts';
import { previousSigning } from './webhook-endpoints.ts';

/** A delivery that this process may attempt until its lease ends. */
export interface HeldDelivery {
  id: string;
  /** What every later write of it must carry. */
  token: string;
  type: (typeof webhookDeliveries.$inferSelect)['type'];
  data: Record<string, unknown>;
  createdAt: Date;
  tries: number;
  endpoint: {
    id: string;
    url: string;
    secretVersion: number;
    /** How many of the secrets before the current one sign, too, because they were replaced a short time ago. */
    previousSigning: number;
    /** Its last attempt failed. */
    failing: boolean;
  };
}

/**
 * Takes at most `limit` deliveries that are due, for `leaseMs`, the longest due first, and those of endpoints that work
 * before those of endpoints that fail, of which at most `failingLimit`. Of one endpoint at most `perEndpoint` are under way,
 * over all workers (two that ask in the same moment may be one batch over it); of one that fails a single one. So neither
 * one nor many that time out hold up the others.
 *
 * Goes from the endpoints to their first due deliveries, so a backlog of any length costs what its first rows cost.
 */
export async function claimDeliveries(
  db: Executor,
  {
    limit,
    failingLimit,
    perEndpoint,
    leaseMs,
  }: { limit: number; failingLimit: number; perEndpoint: number; leaseMs: number },
): Promise<HeldDelivery[]> {
  const token = randomUUID();
  const claimed = await rows<ClaimedRow>(
    db,
    sql`with first as materialized (
      select d.id, d.next_try_at, w.id as endpoint_id, w.url, w.secret_version, ${previousSigning} as previous_signing,
             w.failing_since is not null as failing
        from webhook_endpoints w
       cross join lateral (
         select d.id, d.next_try_at from webhook_deliveries d
          where d.endpoint_id = w.id and d.state = 'pending' and d.next_try_at <= now()
          order by d.next_try_at
          limit greatest(0, case when w.failing_since is null then ${perEndpoint}::int else 1 end -
                (select count(*) from webhook_deliveries h
                  where h.endpoint_id = w.id and h.lease_token is not null and h.next_try_at > now()))
            for update skip locked
       ) d
       where w.enabled
    ), due as (
      select * from (select *, row_number() over (partition by failing order by next_try_at) as nth from first) ranked
       where not failing or nth <= ${failingLimit}::int
       order by failing, next_try_at limit ${limit}
    )
    update webhook_deliveries d set lease_token = ${token}, next_try_at = ${inMs(leaseMs)}
      from due where d.id = due.id
    returning d.id, d.type, d.data, d.created_at, d.tries, due.endpoint_id, due.url, due.secret_version,
              due.previous_signing, due.failing`,
  );
  return claimed.map((row) => ({
    ...{ id: row.id, token, type: row.type, data: row.data, createdAt: createdAtOf(row.created_at), tries: row.tries },
    endpoint: {
      id: row.endpoint_id,
      url: row.url,
      secretVersion: row.secret_version,
      previousSigning: row.previous_signing,
      failing: row.failing,
    },
  }));
}

const createdAtOf = (raw: unknown) => webhookDeliveries.createdAt.mapFromDriverValue(raw as string) as Date;

interface ClaimedRow extends Record<string, unknown>, Pick<HeldDelivery, 'id' | 'type' | 'data' | 'tries'> {
  created_at: unknown;
  endpoint_id: string;
  url: string;
  secret_version: number;
  previous_signing: number;
  failing: boolean;
}

/** How an attempt ended, and what becomes of the delivery. */
export interface Outcome {
  status: number | null;
  /** Null for a success. */
  errorCode: string | null;
  durationMs: number;
  /** When a failed one is tried again; null where it is not. */
  retryMs: number | null;
  /** The receiver wants nothing any more. */
  gone: boolean;
}

export type DisabledReason = NonNullable<(typeof webhookEndpoints.$inferSelect)['disabledReason']>;

/**
 * Writes an attempt into the log, moves its delivery on, and judges the endpoint: a success clears its record; one that is
 * gone, or of which every attempt has failed for `giveUpMs`, is disabled, and its organisation's managers are told. One
 * statement.
 *
 * `held` is false where the lease was lost, and nothing is written. An endpoint that has got another address meanwhile is
 * not judged by what the old one answered.
 */
export async function recordOutcome(
  db: Executor,
  { id, token, endpoint }: Pick<HeldDelivery, 'id' | 'token' | 'endpoint'>,
  { status, errorCode, durationMs, retryMs, gone }: Outcome,
  { giveUpMs }: { giveUpMs: number },
): Promise<{ held: boolean; disabled: DisabledReason | null }> {
  const failed = errorCode !== null;
  const state = failed ? (retryMs === null ? 'failed' : 'pending') : 'delivered';
  const judged = failed
    ? sql`update webhook_endpoints w
             set failing_since = coalesce(w.failing_since, now()), enabled = verdict.reason is null, disabled_reason = verdict.reason
            from ended cross join lateral (
              select case when ${gone} then 'gone' when w2.failing_since < now() - ${giveUpMs} * interval '1 millisecond' then 'failing' end as reason
                from webhook_endpoints w2 where w2.id = ended.endpoint_id) verdict
           where w.id = ended.endpoint_id and w.url = ${endpoint.url} and w.enabled
             and (w.failing_since is null or verdict.reason is not null)`
    : sql`update webhook_endpoints w set failing_since = null from ended
           where w.id = ended.endpoint_id and w.url = ${endpoint.url} and w.failing_since is not null`;
  const [row] = await rows<{ held: boolean; disabled: DisabledReason | null }>(
    db,
    sql`with ended as (
      update webhook_deliveries d
         set state = ${state}, lease_token = null, tries = d.tries + ${failed ? 1 : 0}::int,
             next_try_at = ${inMs(retryMs ?? 0)}, ended_at = case when ${state === 'pending'} then null else now() end
       where d.id = ${id} and d.lease_token = ${token}
      returning d.id, d.endpoint_id
    ), logged as (
      insert into webhook_attempts (delivery_id, status, error_code, duration_ms)
      select id, ${status}::int, ${errorCode}::text, ${Math.round(durationMs)}::int from ended
    ), judged as (${judged}
      returning w.id, w.org_id, w.url, w.disabled_reason
    ), notified as (
      insert into notifications (id, recipient, org_id, kind, payload)
      select gen_random_uuid(), m.subject, j.org_id, 'webhook_endpoint.disabled',
             jsonb_build_object('endpointId', j.id, 'url', j.url, 'reason', j.disabled_reason)
        from judged j join members m on m.org_id = j.org_id and m.role = 'manager'
       where j.disabled_reason is not null
    )
    select exists(select from ended) as held, (select disabled_reason from judged) as disabled`,
  );
  return row ?? { held: false, disabled: null };
}

/** Gives a delivery back that was not attempted to the end: it is due again at once, the attempt not counted. */
export async function handBackDelivery(db: Executor, { id, token }: Pick<HeldDelivery, 'id' | 'token'>): Promise<void> {
  await db
    .update(webhookDeliveries)
    .set({ leaseToken: null, nextTryAt: sql`now()` })
    .where(and(eq(webhookDeliveries.id, id), eq(webhookDeliveries.leaseToken, token)));
}
