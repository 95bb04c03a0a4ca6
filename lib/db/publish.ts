import { randomBytes } from 'node:crypto';
import { and, eq, type SQL, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { QueuedRender } from '../domain/render-states.ts';
import { AppError } from '../errors.ts';
import type { Db, Executor } from './client.ts';
import { bumpAwaited, lockFairKey, nextTag, virtualNow } from './fairness.ts';
import { retryConflict } from './outage.ts';
import { startGeneration } from './requeue.ts';
import { type ResolvedItem, resolveItems } from './resolve-items.ts';
import { rows } from './rows.ts';
import { programs, sessions } from './schema/index.ts';

export interface PublishCounts {
  /** Different renders that the programme needs; items with one recipe share one. */
  total: number;
  ready: number;
  queued: number;
  inProgress: number;
  failed: number;
}

export interface Published {
  counts: PublishCounts;
  /** Renders that became pending in this publish. */
  queued: QueuedRender[];
  /** Those, and the ones whose place in the fair order changed because a patient waits for them: for the mirror. */
  touched: { id: string }[];
}

export interface PublishRequest {
  /** Null: any organisation (a superadmin). */
  orgId: string | null;
  by: string;
  /** Runs in the same transaction, after all of it. */
  alongside?: (tx: Executor, published: Published) => Promise<void>;
}

/**
 * Publishes a programme in one transaction and a constant number of statements: flips it and its draft sessions,
 * resolves every item, inserts the renders that nobody has asked for before, requeues failed ones, links the items.
 *
 * Publishing what is published already repeats nothing and requeues what failed. Throws `not_found`, `conflict`
 * (archived), `not_publishable` with one issue per hopeless item.
 */
export function publishProgram(db: Db, request: PublishRequest & { programId: string }): Promise<Published> {
  const { programId, orgId, by } = request;
  return inOneGo(db, request, async (tx) => {
    const [program] = await tx
      .select()
      .from(programs)
      .where(and(eq(programs.id, programId), orgId === null ? undefined : eq(programs.orgId, orgId)))
      .for('update');
    if (!program) throw new AppError('not_found');
    const { status, language } = program;
    return publish(tx, { status, language, scope: sessionsOf(programId), by, what: 'programme' }, () =>
      tx
        .update(programs)
        .set({ status: 'published', publishedAt: sql`now()`, publishedBy: by })
        .where(eq(programs.id, programId)),
    );
  });
}

/**
 * Publishes a session that stands alone, as `publishProgram` does. One of a programme is published with it: `conflict`.
 */
export function publishSession(db: Db, request: PublishRequest & { sessionId: string }): Promise<Published> {
  const { sessionId, orgId, by } = request;
  return inOneGo(db, request, async (tx) => {
    const [session] = await tx
      .select()
      .from(sessions)
      .where(and(eq(sessions.id, sessionId), orgId === null ? undefined : eq(sessions.orgId, orgId)))
      .for('update');
    if (!session) throw new AppError('not_found');
    const { status, language } = session;
    if (session.programId !== null || language === null) {
      throw new AppError('conflict', { sentence: 'A session of a programme is published with its programme.' });
    }
    return publish(tx, { status, language, scope: sql`s.id = ${sessionId}`, by, what: 'session' });
  });
}

const inOneGo = (db: Db, { alongside }: PublishRequest, work: (tx: Executor) => Promise<Published>) =>
  retryConflict(() =>
    db.transaction(async (tx) => {
      const published = await work(tx);
      await alongside?.(tx, published);
      return published;
    }),
  );

/** For sessions `s`. */
const sessionsOf = (programId: string) => sql`s.program_id = ${programId}`;

/** The renders that the items of the sessions `s` in `scope` are linked to. */
const rendersIn = (scope: SQL) =>
  sql`select i.render_id from session_items i join sessions s on s.id = i.session_id where ${scope}`;

/** The renders that a programme's items are linked to. */
export const rendersOf = (programId: string) => rendersIn(sessionsOf(programId));

interface Publishable {
  status: 'draft' | 'published' | 'archived';
  language: string;
  /** Which sessions, as `s`. */
  scope: SQL;
  by: string;
  what: 'programme' | 'session';
}

async function publish(
  tx: Executor,
  { status, language, scope, by, what }: Publishable,
  flip?: () => Promise<unknown>,
): Promise<Published> {
  if (status === 'archived') throw new AppError('conflict', { sentence: `An archived ${what} cannot be published.` });
  await lockFairKey(tx, by);
  let inserted: QueuedRender[] = [];
  if (status === 'draft') {
    const { items, problems } = await resolveItems(tx, scope, language);
    if (problems.length > 0) throw new AppError('not_publishable', { issues: problems });
    if (items.length === 0) throw new AppError('not_publishable', { sentence: `The ${what} has no exercises.` });
    await flip?.();
    await tx.execute(sql`
      update sessions s set status = 'published', published_at = now(), updated_at = now()
       where ${scope} and s.status = 'draft'`);
    const missing = await linkItems(tx, items, language);
    if (missing.length > 0) inserted = await insertMissing(tx, missing, language, by);
    const hashes = new Set(inserted.map(({ recipeHash }) => recipeHash));
    const insertedByOthers = missing.filter(({ hash }) => !hashes.has(hash));
    if (insertedByOthers.length > 0) await linkItems(tx, insertedByOthers, language);
  }
  const ofThese = sql`r.id in (${rendersIn(scope)})`;
  let { isAssigned, ...counts } = await countRenders(tx, scope);
  let requeued: QueuedRender[] = [];
  // Looking for them costs more than counting, and hardly any publish finds one.
  if (counts.failed > 0) {
    requeued = await startGeneration(tx, ofThese, { from: 'failed', cause: 'republished', forgetVideo: true, by });
    ({ isAssigned, ...counts } = await countRenders(tx, scope));
  }
  // Nobody else plays what was inserted just now, so a patient waits for it only where one was given this programme.
  const mayBeAwaited = isAssigned ? counts.queued > 0 : counts.queued > inserted.length;
  const bumped = mayBeAwaited ? await bumpAwaited(tx, ofThese) : [];
  const queued = [...inserted, ...requeued];
  return { counts, queued, touched: [...queued, ...bumped] };
}

/**
 * Links items to the renders that there are; answers the items whose render there is not. What is there already is found
 * by its hash alone: its recipe, by far the most of it, never goes to Postgres.
 *
 * A subselect finds each one by its key, whatever the planner expects: of a join it may make a look at the whole table.
 */
async function linkItems(tx: Executor, items: readonly ResolvedItem[], language: string): Promise<ResolvedItem[]> {
  const given = items.map(({ exerciseId, hash, itemId }) => ({ item_id: itemId, exercise_id: exerciseId, hash }));
  const absent = await rows<{ item_id: string }>(
    tx,
    sql`with found as materialized (
      select given.item_id,
             (select r.id from exercise_renders r
               where r.exercise_id = given.exercise_id and r.recipe_hash = given.hash and r.language = ${language}) as render_id
        from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as given(item_id uuid, exercise_id uuid, hash text)
    ), linked as (
      update session_items i set render_id = found.render_id
        from found where i.id = found.item_id and found.render_id is not null
    )
    select item_id from found where render_id is null`,
  );
  const ids = new Set(absent.map(({ item_id: id }) => id));
  return items.filter(({ itemId }) => ids.has(itemId));
}

const ID_BYTES = 16;

/**
 * Inserts the renders that do not exist yet, with their first history row and their place in the fair order, and links
 * their items: one round after the other in playing order, so that what comes first is ready first. Inserted by hash, so
 * that two publishes of the same recipes lock them in the same order. What another publish has inserted meanwhile is
 * left out, and its items are not linked.
 */
async function insertMissing(
  tx: Executor,
  items: readonly ResolvedItem[],
  language: string,
  by: string,
): Promise<QueuedRender[]> {
  const distinct = [...new Map(items.map((item) => [item.hash, item])).values()];
  // Asking the system for sixteen bytes takes as long as for thousands.
  const random = randomBytes(ID_BYTES * distinct.length);
  const idOf = new Map(
    distinct.map(({ hash }, nth) => [hash, uuidv7({ random: random.subarray(ID_BYTES * nth, ID_BYTES * (nth + 1)) })]),
  );
  const given = distinct.map(({ exerciseId, hash, recipe }, nth) => ({
    id: idOf.get(hash),
    nth,
    exercise_id: exerciseId,
    hash,
    recipe,
  }));
  const players = items.map(({ itemId, hash }) => ({ item_id: itemId, render_id: idOf.get(hash) }));
  const inserted = await rows<{ id: string; recipe_hash: string; generation: number }>(
    tx,
    sql`with next as materialized (
      select ${virtualNow} as round, ${nextTag(sql`${by}::text`)} as tag
    ), inserted as (
      insert into exercise_renders (id, exercise_id, recipe_hash, language, recipe, fair_key, enqueued_round, fair_tag)
      select g.id, g.exercise_id, g.hash, ${language}, g.recipe, ${by}, next.round, next.tag + g.nth
        from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(id uuid, nth int, exercise_id uuid, hash text, recipe jsonb)
       cross join next
       order by g.hash
      on conflict on constraint exercise_renders_key do nothing
      returning id, recipe_hash, generation, status, attempts
    ), logged as (
      insert into render_events (render_id, generation, to_status, attempt, cause)
      select id, generation, status, attempts, 'published' from inserted
    ), linked as (
      update session_items i set render_id = inserted.id
        from jsonb_to_recordset(${JSON.stringify(players)}::jsonb) as p(item_id uuid, render_id uuid)
        join inserted on inserted.id = p.render_id
       where i.id = p.item_id
    )
    select id, recipe_hash, generation from inserted`,
  );
  return inserted.map((row) => ({ id: row.id, recipeHash: row.recipe_hash, generation: row.generation }));
}

async function countRenders(tx: Executor, scope: SQL): Promise<PublishCounts & { isAssigned: boolean }> {
  const [counts] = await rows<Record<keyof PublishCounts, string> & { isAssigned: boolean }>(
    tx,
    sql`select count(*) as total,
               count(*) filter (where status = 'ready') as ready,
               count(*) filter (where status = 'pending') as queued,
               count(*) filter (where status in ('rendering', 'transcoding')) as "inProgress",
               count(*) filter (where status = 'failed') as failed,
               exists (select from sessions s join assignments a on a.program_id = s.program_id where ${scope}) as "isAssigned"
          from exercise_renders where id in (${rendersIn(scope)})`,
  );
  return {
    total: Number(counts?.total ?? 0),
    ready: Number(counts?.ready ?? 0),
    queued: Number(counts?.queued ?? 0),
    inProgress: Number(counts?.inProgress ?? 0),
    failed: Number(counts?.failed ?? 0),
    isAssigned: counts?.isAssigned ?? false,
  };
}
