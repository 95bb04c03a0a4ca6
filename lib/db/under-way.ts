import { sql } from 'drizzle-orm';
import type { PipelineConfig } from '../config/pipeline.ts';
import type { RenderStatus } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { inStatusSince } from './operate.ts';
import { rows } from './rows.ts';

/**
 * Who has a render that has not ended: a worker, Bunny, the queue; or, while it is pending, what it waits for: the end of
 * a `backoff`, its `turn` where more is due than the queue is to hold, or the `mirror`, which has not told the queue yet.
 */
export type Owner = 'backoff' | 'turn' | 'mirror' | 'queue' | 'worker' | 'bunny';

/** The maintenance duties that move a render on when its deadline has passed. */
export type Sweeper = 'mirror-sweep' | 'lease-sweep' | 'transcode-backstop' | 'webhook-replay';

export interface UnderWay {
  id: string;
  exerciseId: string;
  status: RenderStatus;
  owner: Owner;
  /** The worker's name, where one has it. */
  worker: string | null;
  /** Milliseconds in its present status. */
  ageMs: number;
  /** When its sweeper moves it on, whatever else happens; null for one that waits for its turn. */
  deadline: Date | null;
  sweeper: Sweeper;
  /** The deadline has passed by more than the grace: its sweeper does not do its work. */
  overdue: boolean;
}

export interface UnderWayCount {
  status: RenderStatus;
  owner: Owner;
  count: number;
  overdue: number;
}

type Times = Pick<PipelineConfig, 'RENDER_REDISPATCH_MS' | 'RENDER_QUEUE_MAX_MIRRORED'> & { graceMs: number };

/**
 * A pending row that is due but not told to the queue is so since it was written last: nothing else writes it then. An
 * event that is stored and not applied is looked at before the backstop asks.
 */
const underWay = ({ RENDER_REDISPATCH_MS, RENDER_QUEUE_MAX_MIRRORED, graceMs }: Times) => sql`
  queue as materialized (
    select count(*) > ${RENDER_QUEUE_MAX_MIRRORED} as full from exercise_renders
     where status = 'pending' and (not_before is null or not_before <= now())
  ), owned as (
    select r.*, hook.at as hook_at, case
             when r.status = 'rendering' then 'worker'
             when r.status = 'transcoding' then 'bunny'
             when r.not_before > now() then 'backoff'
             when r.dispatched_at is not null then 'queue'
             when queue.full then 'turn'
             else 'mirror' end as owner
      from exercise_renders r cross join queue
      left join lateral (select min(w.next_try_at) as at from webhook_events w
                          where r.status = 'transcoding' and w.video_guid = r.video_guid and w.applied_at is null) hook on true
     where r.status in ('pending', 'rendering', 'transcoding')
  ), timed as (
    select r.*, case r.owner
             when 'worker' then r.lease_expires_at
             when 'bunny' then least(r.transcode_deadline_at, r.hook_at)
             when 'backoff' then r.not_before
             when 'queue' then r.dispatched_at + ${RENDER_REDISPATCH_MS} * interval '1 millisecond'
             when 'mirror' then greatest(r.updated_at, r.not_before) end as deadline,
           case r.owner
             when 'worker' then 'lease-sweep'
             when 'bunny' then case when r.hook_at < r.transcode_deadline_at then 'webhook-replay' else 'transcode-backstop' end
             else 'mirror-sweep' end as sweeper
      from owned r
  ), under_way as (
    select r.*, coalesce(r.deadline < now() - ${graceMs} * interval '1 millisecond', false) as overdue from timed r
  )`;

/** Renders that have not ended, the longest overdue first, at most `limit`. */
export async function listUnderWay(db: Executor, times: Times, limit: number): Promise<UnderWay[]> {
  const found = await rows<{
    id: string;
    exercise_id: string;
    status: RenderStatus;
    owner: Owner;
    worker: string | null;
    age_ms: number;
    deadline_ms: number | null;
    sweeper: Sweeper;
    overdue: boolean;
  }>(
    db,
    sql`with ${underWay(times)}, first as (
      select * from under_way order by deadline nulls last, id limit ${limit}
    )
    select r.id, r.exercise_id, r.status, r.owner, r.sweeper, r.overdue,
           case when r.owner = 'worker' then r.claimed_by end as worker,
           (extract(epoch from now() - ${inStatusSince}) * 1000)::float8 as age_ms,
           (extract(epoch from r.deadline) * 1000)::float8 as deadline_ms
      from first r order by r.deadline nulls last, r.id`,
  );
  return found.map(({ exercise_id, age_ms, deadline_ms, ...row }) => ({
    ...row,
    exerciseId: exercise_id,
    ageMs: Math.max(0, Math.round(age_ms)),
    deadline: deadline_ms === null ? null : new Date(deadline_ms),
  }));
}

/** How many they are, and of whom. */
export const countUnderWay = (db: Executor, times: Times): Promise<UnderWayCount[]> =>
  rows<UnderWayCount & Record<string, unknown>>(
    db,
    sql`with ${underWay(times)}
    select status, owner, count(*)::int as count, (count(*) filter (where overdue))::int as overdue
      from under_way group by status, owner order by status, owner`,
  );

/** Webhooks stored and not applied, and those of them whose time to be tried has passed by more than the grace. */
export async function countInbox(db: Executor, graceMs: number): Promise<{ unapplied: number; overdue: number }> {
  const [counts] = await rows<{ unapplied: number; overdue: number }>(
    db,
    sql`select count(*)::int as unapplied,
               (count(*) filter (where next_try_at < now() - ${graceMs} * interval '1 millisecond'))::int as overdue
          from webhook_events where applied_at is null`,
  );
  return counts ?? { unapplied: 0, overdue: 0 };
}
