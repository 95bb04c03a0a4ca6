import { type SQL, sql } from 'drizzle-orm';
import { MOVES, type MoveName } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { tellEndpointsOfRenders } from './events.ts';
import { columnsOf, decodeRow, rows } from './rows.ts';
import { type EventError, exerciseRenders } from './schema/index.ts';

export type Render = typeof exerciseRenders.$inferSelect;

/** A claimed render: the id and the token that every later write of it must carry. */
export interface Lease {
  id: string;
  token: string;
}

interface MoveOptions {
  /** Which rows, beside the states that the table of moves allows; for a fenced move the lease says which. */
  where: SQL | Lease;
  /** Columns to write, beside those that every move writes. */
  set?: SQL;
  cause: string;
  /** The token that a claim begins; a fenced move carries the one of its lease. */
  token?: string;
  error?: EventError;
  /** A select over `previous` that gives each row a new place in the fair order: `id`, `fair_key`, `fair_tag`, `round`. */
  places?: SQL;
  /** At most so many, and none that somebody has locked: for sweeps, which one such row would keep from all the others. */
  limit?: number;
}

const ATTEMPTS = {
  keep: sql`r.attempts`,
  count: sql`r.attempts + 1`,
  'give-back': sql`greatest(r.attempts - 1, 0)`,
  reset: sql`0`,
};

/**
 * Makes one move on every row that allows it and writes its history, in one statement. Rows are locked in the order
 * of their hash, so that moves over many rows never wait for each other in a circle; and not more strongly than the
 * update itself would: a publish that has linked an item to the row holds a key share of it.
 *
 * No row back means "not yours, or not in that state": an ordinary outcome. A move of which the table says so also tells
 * the exercise's owner: the superadmins for a platform exercise, else the managers of its organisation. An end, unless
 * somebody decided it, is also told to the endpoints of every organisation that plays the render.
 */
export async function move(
  db: Executor,
  name: MoveName,
  { where, set, cause, error, places, limit, ...given }: MoveOptions,
): Promise<Render[]> {
  const { from, to, attempts, ...effect } = MOVES[name];
  const isLease = 'token' in where;
  if ('fenced' in effect !== isLease) throw new TypeError(`${name} ${isLease ? 'takes no' : 'needs a'} lease`);
  const rowsMeant = isLease ? sql`r.id = ${where.id} and r.lease_token = ${where.token}` : where;
  const token = isLease ? where.token : (given.token ?? null);
  const allowed = sql.join(
    from.map((status) => sql`${status}`),
    sql`, `,
  );
  const columns = [
    sql`status = ${to}`,
    sql`attempts = ${ATTEMPTS[attempts]}`,
    sql`updated_at = now()`,
    ...('newGeneration' in effect ? [sql`generation = r.generation + 1`] : []),
    ...(to === 'rendering' ? [] : [sql`lease_token = null`, sql`lease_expires_at = null`]),
    ...(to === 'pending' ? [sql`progress_stage = null`, sql`progress_percent = null`] : []),
    ...(error ? [sql`error_code = ${error.code}`, sql`error_message = ${error.message}`] : []),
    ...(places
      ? [sql`fair_key = places.fair_key`, sql`fair_tag = places.fair_tag, enqueued_round = places.round`]
      : []),
    ...(set ? [set] : []),
  ];
  const notify = sql`, notified as (
    insert into notifications (id, recipient, org_id, kind, payload)
    select gen_random_uuid(), m.subject, e.org_id, 'exercise.render_failed',
           jsonb_build_object('renderId', moved.id, 'exerciseId', e.id, 'code', moved.error_code, 'message', moved.error_message)
      from moved
      join exercises e on e.id = moved.exercise_id
      join members m on (e.tier = 'platform' and m.role = 'superadmin') or (e.tier = 'org' and m.org_id = e.org_id and m.role = 'manager'))`;
  const event = to === 'ready' ? 'exercise.render_ready' : 'tellsOwner' in effect ? 'exercise.render_failed' : null;
  const result = await rows(
    db,
    sql`with previous as (
      select r.id, r.status, r.recipe_hash, r.fair_key, r.fair_tag, r.video_guid from exercise_renders r
       where r.status in (${allowed}) and ${rowsMeant}
       order by r.recipe_hash ${limit === undefined ? sql`` : sql`limit ${limit}`}
         for no key update ${limit === undefined ? sql`` : sql`skip locked`}
    )${places ? sql`, places as (${places})` : sql``}, moved as (
      update exercise_renders r set ${sql.join(columns, sql`, `)}
        from previous ${places ? sql`join places using (id)` : sql``} where previous.id = r.id
      returning r.*, previous.status as previous_status, previous.video_guid as previous_video
    ), logged as (
      insert into render_events (render_id, generation, from_status, to_status, attempt, cause, lease_token, error, gave_up_video)
      select id, generation, previous_status, status, attempts, ${cause}, ${token}::uuid, ${error ? JSON.stringify(error) : null}::jsonb,
             case when previous_video is distinct from video_guid then previous_video end from moved
    )${'tellsOwner' in effect ? notify : sql``}${event ? sql`, announced as (${tellEndpointsOfRenders(event)})` : sql``}
    select ${columnsOf(exerciseRenders)} from moved`,
  );
  return result.map((row) => decodeRow(exerciseRenders, row));
}
