import { randomBytes } from 'node:crypto';
import { and, eq, type SQL, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { QueuedRender, RenderStatus } from '../domain/render-states.ts';
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
    return publish(tx, { status, language, scope: sessionsOf(programId), by, what: 'programme' }, async () => {
      const [flipped] = await tx
        .update(programs)
        .set({ status: 'published', publishedAt: sql`now()`, publishedBy: by })
        .where(eq(programs.id, programId))
        .returning({ isAssigned: sql<boolean>`exists (select from assignments a where a.program_id = ${programId})` });
      return flipped?.isAssigned ?? false;
    });
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

/**
 * `flip` publishes what the sessions are part of, and answers whether a patient has been given it. An assignment waits
 * for the lock on that row, so none comes later.
 */
async function publish(
  tx: Executor,
  { status, language, scope, by, what }: Publishable,
  flip?: () => Promise<boolean>,
): Promise<Published> {
  if (status === 'archived') throw new AppError('conflict', { sentence: `An archived ${what} cannot be published.` });
  await lockFairKey(tx, by);
  let inserted: QueuedRender[] = [];
  let isAssigned = false;
  let counts: PublishCounts;
  if (status === 'draft') {
    const { items, problems } = await resolveItems(tx, scope, language);
    if (problems.length > 0) throw new AppError('not_publishable', { issues: problems });
    if (items.length === 0) throw new AppError('not_publishable', { sentence: `The ${what} has no exercises.` });
    if (flip) isAssigned = await flip();
    await tx.execute(sql`
      update sessions s set status = 'published', published_at = now(), updated_at = now()
       where ${scope} and s.status = 'draft'`);
    const { missing, tallies } = await linkItems(tx, items, language);
    if (missing.length > 0) inserted = await insertMissing(tx, missing, language, by);
    tallies.push({ status: 'pending', renders: inserted.length });
    const hashes = new Set(inserted.map(({ recipeHash }) => recipeHash));
    const insertedByOthers = missing.filter(({ hash }) => !hashes.has(hash));
    if (insertedByOthers.length > 0) tallies.push(...(await linkItems(tx, insertedByOthers, language)).tallies);
    counts = countsOf(tallies);
  } else counts = countsOf(await tallyRenders(tx, scope));
  const ofThese = sql`r.id in (${rendersIn(scope)})`;
  let requeued: QueuedRender[] = [];
  // Looking for them costs more than counting, and hardly any publish finds one.
  if (counts.failed > 0) {
    requeued = await startGeneration(tx, ofThese, { from: 'failed', cause: 'republished', forgetVideo: true, by });
    counts = countsOf(await tallyRenders(tx, scope));
  }
  // Nobody else plays what was inserted just now, so a patient waits for it only where one was given this programme.
  const mayBeAwaited = isAssigned ? counts.queued > 0 : counts.queued > inserted.length;
  const bumped = mayBeAwaited ? await bumpAwaited(tx, ofThese) : [];
  const queued = [...inserted, ...requeued];
  return { counts, queued, touched: [...queued, ...bumped] };
}

interface Linked {
  /** The items whose render there is not. */
  missing: ResolvedItem[];
  /** The renders that the others are linked to now. */
  tallies: Tally[];
}

/**
 * Links items to the renders that there are. What is there already is found by its hash alone: its recipe, by far the
 * most of it, never goes to Postgres.
 *
 * With its limit the subselect finds each one by its key, whatever the planner expects: of a plain join it may make a
 * look at the whole table.
 */
async function linkItems(tx: Executor, items: readonly ResolvedItem[], language: string): Promise<Linked> {
  const given = items.map(({ exerciseId, hash, itemId }) => ({ item_id: itemId, exercise_id: exerciseId, hash }));
  const found = await rows<{ status: RenderStatus | null; renders: number; items: string[] | null }>(
    tx,
    sql`with found as materialized (
      select given.item_id, r.id as render_id, r.status
        from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as given(item_id uuid, exercise_id uuid, hash text)
        left join lateral (
          select id, status from exercise_renders
           where exercise_id = given.exercise_id and recipe_hash = given.hash and language = ${language} limit 1
        ) r on true
    ), linked as (
      update session_items i set render_id = found.render_id
        from found where i.id = found.item_id and found.render_id is not null
    )
    select status, count(distinct render_id)::int as renders, json_agg(item_id) filter (where status is null) as items
      from found group by status`,
  );
  const absent = new Set(found.flatMap(({ items }) => items ?? []));
  return {
    missing: items.filter(({ itemId }) => absent.has(itemId)),
    tallies: found.flatMap(({ status, renders }) => (status === null ? [] : { status, renders })),
  };
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

/** So many different renders are in this status. */
interface Tally {
  status: RenderStatus;
  renders: number;
}

const tallyRenders = (tx: Executor, scope: SQL) =>
  rows<Tally & Record<string, unknown>>(
    tx,
    sql`select status, count(*)::int as renders from exercise_renders where id in (${rendersIn(scope)}) group by status`,
  );

function countsOf(tallies: readonly Tally[]): PublishCounts {
  const sum = (which: readonly Tally[]) => which.reduce((total, { renders }) => total + renders, 0);
  const of = (...statuses: RenderStatus[]) => sum(tallies.filter(({ status }) => statuses.includes(status)));
  return {
    total: sum(tallies),
    ready: of('ready'),
    queued: of('pending'),
    inProgress: of('rendering', 'transcoding'),
    failed: of('failed'),
  };
}
