import { type SQL, sql } from 'drizzle-orm';
import { BASE_STEP, HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../domain/fair-order.ts';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';

/** Whether a pending render `r` may be claimed now. */
export const isDue = sql`(r.not_before is null or r.not_before <= now())`;

/**
 * The round that is being served: the highest ever claimed in, or the lowest that may be claimed where all of those are
 * later; and never before what an enqueue took it for. Why nothing less will do: docs/decisions/fair-order.md.
 */
export const virtualNow = sql`greatest(
  (select max(served_round) from exercise_renders where served_round is not null),
  (select max(enqueued_round) from exercise_renders),
  (select min(r.fair_tag) from exercise_renders r where r.status = 'pending' and ${isDue}), 1)`;

/** The first round that is free for whoever the expression `fairKey` names: after the last they still wait for. */
export const nextTag = (fairKey: SQL) => sql`greatest(${virtualNow},
  1 + (select max(fair_tag) from exercise_renders where fair_key = ${fairKey} and status in ('pending', 'rendering')))`;

/**
 * For `move`: a new place for each render that is enqueued anew, in the order they had; behind those of `by`, or of the
 * specialist who asked for it first where `by` is not given.
 */
export function placesAnew(by: string | undefined): SQL {
  const key = sql`coalesce(${by ?? null}::text, fair_key)`;
  return sql`
    select p.id, p.fair_key, next.round, next.tag - 1 + row_number() over (partition by p.fair_key order by p.fair_tag, p.recipe_hash) as fair_tag
      from (select id, recipe_hash, fair_tag, ${key} as fair_key from previous) p
      join (select k.fair_key, ${virtualNow} as round, ${nextTag(sql`k.fair_key`)} as tag from (select distinct ${key} as fair_key from previous) k) next
        on next.fair_key = p.fair_key`;
}

/** `queuePriority` of lib/domain/fair-order.ts for a row `r`, where `now` is the virtual now. */
export const priorityOf = (now: SQL) => sql`least(greatest(
  1 + 2 * (r.fair_tag - ${now} / ${BASE_STEP}::bigint * ${BASE_STEP}::bigint) + case when r.urgent then 0 else 1 end,
  ${HIGHEST_PRIORITY}), ${LOWEST_PRIORITY})::int`;

/** The order in which pending renders `r` are to be baked. A row last changed when it began to wait: equals are FIFO. */
export const fairOrder = sql`r.fair_tag, r.urgent desc, r.updated_at, r.id`;

/**
 * Lets one specialist's enqueues go one after the other until the end of the transaction; those of different ones do
 * not wait for each other. Without it two publishes at once would take the same rounds, and twice their share. To be
 * taken before any render is locked, so that it cannot be part of a circle.
 */
export async function lockFairKey(tx: Executor, fairKey: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended('fair:' || ${fairKey}, 0))`);
}

/** Whether a patient has been given a published programme that the render `r` blocks. */
const isAwaited = sql`exists (
  select from session_items i
    join sessions s on s.id = i.session_id
    join programs p on p.id = s.program_id
    join assignments a on a.program_id = p.id
   where i.render_id = r.id and p.status = 'published')`;

/**
 * Bumps the pending renders, among those that `scope` selects (as `r`), that a patient waits for: they take the earliest
 * rounds of their own specialist and are marked as urgent, which lets them go first in their round. Nobody else's round
 * changes, however much is urgent. Answers the renders whose place did change.
 *
 * Who has been served in the present round already is not let go first in it once more while somebody else waits there:
 * else asking for one urgent thing after the other would keep the others waiting for ever.
 *
 * Rows are locked in the order of their hash, as every move does; one that is claimed meanwhile drops out.
 *
 * `affected` is materialised: while few renders are pending, Postgres expects so few that it would look for it again at
 * each of a thousand rows just inserted (measured: 9 s of a publish, most of it here, instead of 0.4 s).
 */
export function bumpAwaited(db: Executor, scope: SQL): Promise<{ id: string }[]> {
  return rows<{ id: string }>(
    db,
    sql`with affected as materialized (
      select distinct r.fair_key from exercise_renders r
       where r.status = 'pending' and not r.urgent and ${scope} and ${isAwaited}
    ), waiting as (
      select r.id, r.fair_key, r.fair_tag, r.urgent from exercise_renders r
       where r.status = 'pending' and r.fair_key in (select fair_key from affected)
       order by r.recipe_hash
         for no key update
    ), ranked as (
      select r.id, r.fair_key, r.fair_tag, r.awaited,
             row_number() over (partition by r.fair_key order by r.fair_tag, r.id) as slot,
             row_number() over (partition by r.fair_key order by r.awaited desc, r.fair_tag, r.id) as place
        from (select r.*, r.urgent or ${isAwaited} as awaited from waiting r) r
    ), clock as materialized (
      select ${virtualNow} as now
    ), served as (
      select distinct c.served_key as fair_key from exercise_renders c join clock on c.served_round = clock.now
       where exists (select from exercise_renders o
                      where o.status = 'pending' and o.fair_tag = clock.now and o.fair_key <> c.served_key)
    ), placed as (
      select mine.id, given.fair_tag,
             mine.awaited and not (given.fair_tag = clock.now and mine.fair_key in (select fair_key from served)) as urgent
        from ranked mine join ranked given on given.fair_key = mine.fair_key and given.slot = mine.place cross join clock
    )
    update exercise_renders r set urgent = placed.urgent, fair_tag = placed.fair_tag
      from placed
     where r.id = placed.id and (r.urgent, r.fair_tag) is distinct from (placed.urgent, placed.fair_tag)
    returning r.id`,
  );
}
