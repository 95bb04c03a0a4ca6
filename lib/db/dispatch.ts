import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { fairOrder, isDue, priorityOf, virtualNow } from './fairness.ts';
import { rows } from './rows.ts';

/** A pending render whose job is not as it should be. */
export interface MirrorEntry {
  id: string;
  recipeHash: string;
  generation: number;
  /** What the queue is to be told now. */
  priority: number;
  /** What it was told last; null: nothing yet, or nobody knows. */
  told: number | null;
  /** Whether the queue has confirmed its job. */
  dispatched: boolean;
  /** Whether it belongs into the queue now: it is one of the first that are due. */
  inside: boolean;
}

/** What the mirror knows of the rows and writes back to them. */
export interface MirrorRows {
  /** The most renders that the queue is to hold. */
  max: number;
  /** Renders whose job is not as it should be; among these, or all, those dispatched `staleMs` ago and unclaimed too. */
  changes(which: readonly string[] | { staleMs: number }): Promise<MirrorEntry[]>;
  /** How many pending renders the queue has confirmed. */
  countDispatched(): Promise<number>;
  /** Notes that the queue has their jobs, at these priorities. */
  markDispatched(entries: readonly MirrorEntry[]): Promise<void>;
  /** Notes that the queue has them no more. */
  markEvicted(entries: readonly MirrorEntry[]): Promise<void>;
}

/** The rows behind a mirror that holds the first `max` pending renders that are due, in fair order, and no more. */
export const mirrorRows = (db: Executor, max: number): MirrorRows => ({
  max,
  changes: (which) => mirrorChanges(db, max, which),
  countDispatched: () => countDispatched(db),
  markDispatched: (entries) => markDispatched(db, entries),
  markEvicted: (entries) => markEvicted(db, entries),
});

const entryColumns = sql`r.id, r.recipe_hash, r.generation, r.status, r.fair_tag, r.urgent, r.updated_at, r.dispatched_at, r.mirrored_priority`;

/**
 * In the order in which they are to be baked. While few renders are pending Postgres expects few, and would pair two
 * thousand with two thousand by nested loops (measured: 1.4 s and more for every sweep of a full mirror, against some
 * hundredths). So pending rows are joined to nothing, and those asked for are found by their id before their state matters.
 * With its limit the subselect finds each by its key: a plain join reads the whole table, until that is large.
 */
async function mirrorChanges(
  db: Executor,
  max: number,
  which: readonly string[] | { staleMs: number },
): Promise<MirrorEntry[]> {
  const [meant, isStale] =
    'staleMs' in which
      ? [
          sql`exercise_renders r where r.status = 'pending' and (r.dispatched_at is not null or r.id in (select id from first))`,
          sql`r.dispatched_at < now() - ${which.staleMs} * interval '1 millisecond'`,
        ]
      : [
          sql`unnest(${sql.param(which)}::uuid[]) as given(id)
            cross join lateral (select * from exercise_renders where id = given.id limit 1) r`,
          sql`false`,
        ];
  const found = await rows<{
    id: string;
    recipe_hash: string;
    generation: number;
    priority: number;
    told: number | null;
    dispatched: boolean;
    inside: boolean;
  }>(
    db,
    sql`with clock as materialized (
      select ${virtualNow} as now
    ), first as materialized (
      select r.id from exercise_renders r
       where r.status = 'pending' and ${isDue}
       order by ${fairOrder} limit ${max}
    ), meant as materialized (
      select ${entryColumns} from ${meant}
    ), entry as (
      select r.*, r.id in (select id from first) as inside from meant r where r.status = 'pending'
    )
    select r.id, r.recipe_hash, r.generation, ${priorityOf(sql`(select now from clock)`)} as priority, r.mirrored_priority as told,
           r.dispatched_at is not null as dispatched, r.inside
      from entry r
     where case when r.inside
                then r.dispatched_at is null or ${isStale} or r.mirrored_priority is distinct from ${priorityOf(sql`(select now from clock)`)}
                else r.dispatched_at is not null end
     order by ${fairOrder}`,
  );
  return found.map(({ recipe_hash: recipeHash, ...entry }) => ({ recipeHash, ...entry }));
}

async function countDispatched(db: Executor): Promise<number> {
  const [row] = await rows<{ dispatched: string }>(
    db,
    sql`select count(*) as dispatched from exercise_renders where status = 'pending' and dispatched_at is not null`,
  );
  return Number(row?.dispatched ?? 0);
}

/**
 * Writes `set` to what is still the render that the mirror had in hand: one that was claimed meanwhile, or requeued
 * under a newer generation, is another matter. One that somebody is claiming or bumping just now is passed over, and the
 * next sweep looks at it again: these notes are never worth a wait, and so are part of no deadlock.
 */
async function note(db: Executor, entries: readonly MirrorEntry[], set: SQL): Promise<void> {
  if (entries.length === 0) return;
  const given = JSON.stringify(
    entries.map(({ id, generation, priority, told }) => ({ id, generation, priority, told })),
  );
  await db.execute(sql`
    with given as (
      select * from jsonb_to_recordset(${given}::jsonb) as g(id uuid, generation int, priority int, told int)
    ), held as (
      select given.* from exercise_renders r join given using (id)
       where r.generation = given.generation and r.status = 'pending'
         for no key update of r skip locked
    )
    update exercise_renders r set ${set} from held where r.id = held.id`);
}

/**
 * Where somebody else told the queue something at the same time, which of the two it heard last is not known: null, and
 * the sweep tells it again.
 */
const markDispatched = (db: Executor, entries: readonly MirrorEntry[]) =>
  note(
    db,
    entries,
    sql`dispatched_at = now(),
      mirrored_priority = case when r.mirrored_priority is not distinct from held.told then held.priority end`,
  );

const markEvicted = (db: Executor, entries: readonly MirrorEntry[]) =>
  note(db, entries, sql`dispatched_at = null, mirrored_priority = null`);
