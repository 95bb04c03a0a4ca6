import { inArray, type SQL, sql } from 'drizzle-orm';
import type { RenderStatus } from '../domain/render-states.ts';
import { ERRORS } from '../errors.ts';
import type { Db, Executor } from './client.ts';
import { move } from './move.ts';
import { retryConflict } from './outage.ts';
import { requeueRenders } from './requeue.ts';
import { rows } from './rows.ts';

/** `waiting` is pending with a time before which it is not to be tried again. */
export type RenderCondition = RenderStatus | 'waiting';

/** What an operator's command is about; everything given must hold. */
export interface RenderFilter {
  ids?: readonly string[];
  conditions?: readonly RenderCondition[];
  /** Codes of the last error. */
  codes?: readonly string[];
  exerciseId?: string;
  language?: string;
  /** Played by an item of this programme. */
  programId?: string;
  /** Played by an item of a session of this organisation. */
  orgId?: string;
  /** Longer in its present status than so many milliseconds. */
  olderThanMs?: number;
}

export interface SelectedRender {
  id: string;
  exerciseId: string;
  recipeHash: string;
  language: string;
  status: RenderStatus;
  waits: boolean;
  errorCode: string | null;
}

/** When the render `r` came into its present status; the history may have been pruned, but not of what is under way. */
export const inStatusSince = sql`coalesce(
  (select e.at from render_events e where e.render_id = r.id order by e.id desc limit 1), r.created_at)`;

const waits = sql`(r.status = 'pending' and r.not_before is not null and r.not_before > now())`;

/** Renders that the filter selects, in the order of their ids, after the given one. */
export async function selectRenders(
  db: Executor,
  filter: RenderFilter,
  page: { after: string | null; limit: number },
): Promise<SelectedRender[]> {
  const found = await rows<{
    id: string;
    exercise_id: string;
    recipe_hash: string;
    language: string;
    status: RenderStatus;
    waits: boolean;
    error_code: string | null;
  }>(
    db,
    sql`select r.id, r.exercise_id, r.recipe_hash, r.language, r.status, ${waits} as waits, r.error_code
          from exercise_renders r
         where ${sql.join([...conditionsOf(filter), page.after === null ? sql`true` : sql`r.id > ${page.after}`], sql` and `)}
         order by r.id limit ${page.limit}`,
  );
  return found.map((row) => ({
    id: row.id,
    exerciseId: row.exercise_id,
    recipeHash: row.recipe_hash,
    language: row.language,
    status: row.status,
    waits: row.waits,
    errorCode: row.error_code,
  }));
}

function conditionsOf(filter: RenderFilter): SQL[] {
  const playedBy = (where: SQL) =>
    sql`r.id in (select i.render_id from session_items i join sessions s on s.id = i.session_id where ${where})`;
  const { ids, conditions, codes, exerciseId, language, programId, orgId, olderThanMs } = filter;
  return [
    ...(ids ? [isOneOf(ids)] : []),
    ...(conditions ? [sql`(${sql.join(conditions.map(holds), sql` or `)})`] : []),
    ...(codes ? [inArray(sql`r.error_code`, [...codes])] : []),
    ...(exerciseId ? [sql`r.exercise_id = ${exerciseId}`] : []),
    ...(language ? [sql`r.language = ${language}`] : []),
    ...(programId ? [playedBy(sql`s.program_id = ${programId}`)] : []),
    ...(orgId ? [playedBy(sql`s.org_id = ${orgId}`)] : []),
    ...(olderThanMs ? [sql`${inStatusSince} < now() - ${olderThanMs} * interval '1 millisecond'`] : []),
  ];
}

const holds = (condition: RenderCondition) => (condition === 'waiting' ? waits : sql`r.status = ${condition}`);

const isOneOf = (ids: readonly string[]) => sql`r.id = any(${sql.param([...ids])}::uuid[])`;

/** What each beginning of an id or of a recipe hash (eight characters or more, lower case) stands for. */
export function findByPrefixes(
  db: Executor,
  prefixes: readonly string[],
): Promise<{ prefix: string; count: number; id: string | null }[]> {
  // Joined by the first eight characters, so that many prefixes over many rows are one pass and not a product.
  const beginsWith = (text: SQL) => sql`select g.prefix, r.id from given g
    join exercise_renders r on left(${text}, 8) = left(g.prefix, 8) and starts_with(${text}, g.prefix)`;
  return rows(
    db,
    sql`with given as (select unnest(${sql.param([...prefixes])}::text[]) as prefix),
    found as (${beginsWith(sql`r.id::text`)} union ${beginsWith(sql`r.recipe_hash`)})
    select g.prefix, count(f.id)::int as count, min(f.id::text) as id
      from given g left join found f on f.prefix = g.prefix
     group by g.prefix`,
  );
}

/**
 * Makes failed and ready renders pending again in a new generation. One of `failed` keeps its video, and with it what has
 * been uploaded already; `failedVideo` and `ready` give theirs up. Answers the ids that were still in that state.
 */
export function requeueByOperator(
  db: Db,
  ids: { failed: readonly string[]; failedVideo: readonly string[]; ready: readonly string[] },
  cause: string,
): Promise<string[]> {
  // One kind after the other, each with its bump, is no order that all others lock in.
  return retryConflict(() =>
    db.transaction(async (tx) => {
      const requeue = async (from: 'failed' | 'ready', some: readonly string[], forgetVideo: boolean) =>
        some.length > 0 ? await requeueRenders(tx, isOneOf(some), { from, cause, forgetVideo }) : [];
      const requeued = [
        ...(await requeue('failed', ids.failed, false)),
        ...(await requeue('failed', ids.failedVideo, true)),
        ...(await requeue('ready', ids.ready, true)),
      ];
      return requeued.map(({ id }) => id);
    }),
  );
}

/** Ends the wait of pending renders for a later attempt: the next sweep mirrors them. Answers the ids that waited. */
export async function endWaits(db: Executor, ids: readonly string[]): Promise<string[]> {
  const ended = await rows<{ id: string }>(
    db,
    // Locked in the order in which every move locks: as they happen to lie they would wait for a publish in a circle.
    sql`with ended as (
      select r.id from exercise_renders r where ${isOneOf(ids)} and ${waits} order by r.recipe_hash for no key update
    )
    update exercise_renders r set not_before = null, dispatched_at = null, updated_at = now()
      from ended where r.id = ended.id returning r.id`,
  );
  return ended.map(({ id }) => id);
}

/**
 * Ends renders that are not to be made, whatever their state on the way. Who is at work on one finds its lease gone with
 * the next heartbeat, and nobody is notified. A video at Bunny is given up: an operator cancels what hangs there, and a
 * retry would find it again and wait for it anew. Answers the ids that were under way.
 */
export async function cancelByOperator(db: Executor, ids: readonly string[], cause: string): Promise<string[]> {
  const cancelled = await move(db, 'cancel', {
    where: isOneOf(ids),
    set: sql`not_before = null, video_guid = case when r.status = 'transcoding' then null else r.video_guid end`,
    cause,
    error: { code: 'cancelled', message: ERRORS.cancelled.sentence },
  });
  return cancelled.map(({ id }) => id);
}
