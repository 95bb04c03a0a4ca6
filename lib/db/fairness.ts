import { type SQL, sql } from 'drizzle-orm';
import { BASE_STEP, HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../domain/fair-order.ts';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';

/**
 * The round that is being served: the highest tag ever claimed, or the lowest that waits where all of those are later.
 * Why not simply the lowest that waits: docs/decisions/fair-order.md.
 */
export const virtualNow = sql`greatest(
  (select max(fair_tag) from exercise_renders where status <> 'pending'),
  (select min(fair_tag) from exercise_renders where status = 'pending'), 1)`;

/**
 * The first free round of whoever is named by the expression `fairKey`: the present one, or the one after the last they
 * have a render in. Renders already claimed count as well, so that nobody enters a round twice by asking for one thing
 * after the other.
 */
export const nextTag = (fairKey: SQL) => sql`(
  select greatest(clock.tag,
    1 + (select max(fair_tag) from exercise_renders where fair_key = ${fairKey} and status in ('pending', 'rendering')),
    1 + (select max(fair_tag) from exercise_renders where fair_key = ${fairKey} and status <> 'pending' and fair_tag >= clock.tag))
    from (select ${virtualNow} as tag) clock)`;

/**
 * For `move`: a new place for each render that is enqueued anew, in the order they had; behind those of `by`, or of the
 * specialist who asked for it first where `by` is not given.
 */
export function placesAnew(by: string | undefined): SQL {
  const key = sql`coalesce(${by ?? null}::text, fair_key)`;
  return sql`
    select p.id, p.fair_key, next.tag - 1 + row_number() over (partition by p.fair_key order by p.fair_tag, p.recipe_hash) as fair_tag
      from (select id, recipe_hash, fair_tag, ${key} as fair_key from previous) p
      join (select k.fair_key, ${nextTag(sql`k.fair_key`)} as tag from (select distinct ${key} as fair_key from previous) k) next
        on next.fair_key = p.fair_key`;
}

/** `queuePriority` of lib/domain/fair-order.ts for a row `r`, where `now` is the virtual now. */
export const priorityOf = (now: SQL) => sql`least(greatest(
  1 + 2 * (r.fair_tag - ${now} / ${BASE_STEP}::bigint * ${BASE_STEP}::bigint) + case when r.urgent then 0 else 1 end,
  ${HIGHEST_PRIORITY}), ${LOWEST_PRIORITY})::int`;

/** The order in which pending renders `r` are to be baked; equals by age, which a UUID of version 7 begins with. */
export const fairOrder = sql`r.fair_tag, r.urgent desc, r.id`;

/**
 * Lets one specialist's enqueues go one after the other until the end of the transaction; those of different ones do
 * not wait for each other. Without it two publishes at once would take the same rounds, and twice their share. To be
 * taken before any render is locked, so that it cannot be part of a circle.
 */
export async function lockFairKey(tx: Executor, fairKey: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended('fair:' || ${fairKey}, 0))`);
}

/**
 * Marks as urgent what blocks a published programme that a patient has been given, among the pending renders that
 * `scope` selects (as `r`), and moves it to the earliest rounds of its own specialist. Nobody else's place changes,
 * however much is urgent. Answers the renders whose place did.
 *
 * Rows are locked in the order of their hash, as every move does; one that is claimed meanwhile drops out.
 */
export function bumpAwaited(db: Executor, scope: SQL): Promise<{ id: string }[]> {
  return rows<{ id: string }>(
    db,
    sql`with awaited as (
      select r.id, r.fair_key from exercise_renders r
       where r.status = 'pending' and not r.urgent and ${scope}
         and exists (select from session_items i
                       join sessions s on s.id = i.session_id
                       join programs p on p.id = s.program_id
                       join assignments a on a.program_id = p.id
                      where i.render_id = r.id and p.status = 'published')
    ), waiting as (
      select r.id, r.fair_key, r.fair_tag, r.urgent from exercise_renders r
       where r.status = 'pending' and r.fair_key in (select fair_key from awaited)
       order by r.recipe_hash
         for no key update
    ), marked as (
      select w.id, w.fair_key, w.fair_tag, w.urgent or a.id is not null as urgent
        from waiting w left join awaited a using (id)
    ), ranked as (
      select *, row_number() over (partition by fair_key order by fair_tag, id) as slot,
                row_number() over (partition by fair_key order by urgent desc, fair_tag, id) as place
        from marked
    )
    update exercise_renders r set urgent = mine.urgent, fair_tag = given.fair_tag
      from ranked mine join ranked given on given.fair_key = mine.fair_key and given.slot = mine.place
     where r.id = mine.id and (r.urgent, r.fair_tag) is distinct from (mine.urgent, given.fair_tag)
    returning r.id`,
  );
}
