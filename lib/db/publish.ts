import { eq, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { Recipe } from '../domain/recipe.ts';
import type { QueuedRender } from '../domain/render-states.ts';
import { type Resolution, resolveRecipe } from '../domain/resolve.ts';
import { AppError } from '../errors.ts';
import type { Db, Executor } from './client.ts';
import { bumpAwaited, lockFairKey, nextTag, virtualNow } from './fairness.ts';
import { retryConflict } from './outage.ts';
import { startGeneration } from './requeue.ts';
import { rows } from './rows.ts';
import { programs, type RepMarks, sessions } from './schema/index.ts';

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

/**
 * Publishes a programme in one transaction and a constant number of statements: flips it and its draft sessions,
 * resolves every item, inserts the renders that nobody has asked for before, requeues failed ones, links the items.
 *
 * Publishing what is published already repeats nothing and requeues what failed. `orgId` null: any organisation
 * (a superadmin). Throws `not_found`, `conflict` (archived), `not_publishable` with one issue per hopeless item.
 */
export function publishProgram(
  db: Db,
  request: { programId: string; orgId: string | null; by: string },
): Promise<Published> {
  return retryConflict(() => publishOnce(db, request));
}

function publishOnce(db: Db, request: { programId: string; orgId: string | null; by: string }): Promise<Published> {
  return db.transaction(async (tx) => {
    const [program] = await tx.select().from(programs).where(eq(programs.id, request.programId)).for('update');
    if (!program || (request.orgId !== null && program.orgId !== request.orgId)) throw new AppError('not_found');
    if (program.status === 'archived') {
      throw new AppError('conflict', { sentence: 'An archived programme cannot be published.' });
    }
    await lockFairKey(tx, request.by);
    const inserted = program.status === 'draft' ? await publishDraft(tx, program.id, program.language, request.by) : [];
    const ofProgram = sql`r.id in (${rendersOf(program.id)})`;
    const requeued = await startGeneration(tx, ofProgram, {
      from: 'failed',
      cause: 'republished',
      forgetVideo: true,
      by: request.by,
    });
    const bumped = await bumpAwaited(tx, ofProgram);
    const queued = [...inserted, ...requeued];
    return { counts: await countRenders(tx, program.id), queued, touched: [...queued, ...bumped] };
  });
}

/** The renders that a programme's items are linked to. */
export const rendersOf = (programId: string) =>
  sql`select i.render_id from session_items i join sessions s on s.id = i.session_id where s.program_id = ${programId}`;

async function publishDraft(tx: Executor, programId: string, language: string, by: string): Promise<QueuedRender[]> {
  const items = await resolveItems(tx, programId, language);
  await tx
    .update(programs)
    .set({ status: 'published', publishedAt: sql`now()`, publishedBy: by })
    .where(eq(programs.id, programId));
  await tx
    .update(sessions)
    .set({ status: 'published', publishedAt: sql`now()` })
    .where(sql`${sessions.programId} = ${programId} and ${sessions.status} = 'draft'`);
  const inserted = await insertMissing(tx, items, language, by);
  await tx.execute(sql`
    update session_items i set render_id = r.id
      from jsonb_to_recordset(${JSON.stringify(items.map(({ itemId, exerciseId, hash }) => ({ item_id: itemId, exercise_id: exerciseId, hash })))}::jsonb)
           as given(item_id uuid, exercise_id uuid, hash text)
      join exercise_renders r on r.exercise_id = given.exercise_id and r.recipe_hash = given.hash and r.language = ${language}
     where i.id = given.item_id`);
  return inserted;
}

interface ResolvedItem {
  itemId: string;
  exerciseId: string;
  recipe: Recipe;
  hash: string;
}

interface ItemRow extends Record<string, unknown> {
  item_id: string;
  session_title: string;
  position: number;
  exercise_id: string;
  dose: Parameters<typeof resolveRecipe>[0]['dose'];
  rep_marks: RepMarks;
  sha256: string | null;
  duration_ms: number | null;
}

interface ClipRow extends Record<string, unknown> {
  exercise_id: string;
  language: string;
  name: string;
  sha256: string;
}

/** Turns every item into its recipe, or refuses the whole programme naming each item that cannot be one. */
async function resolveItems(tx: Executor, programId: string, language: string): Promise<ResolvedItem[]> {
  const items = await rows<ItemRow>(
    tx,
    sql`select i.id as item_id, s.title as session_title, i.position, i.exercise_id, i.dose, e.rep_marks, src.sha256, src.duration_ms
          from sessions s
          join session_items i on i.session_id = s.id
          join exercises e on e.id = i.exercise_id
          left join lateral (select sha256, duration_ms from exercise_sources where exercise_id = e.id order by created_at desc limit 1) src on true
         where s.program_id = ${programId}
         order by s.position, i.position`,
  );
  if (items.length === 0) {
    throw new AppError('not_publishable', { sentence: 'The programme has no exercises.' });
  }
  const clips = await rows<ClipRow>(
    tx,
    sql`select c.exercise_id, c.language, c.name, c.sha256 from cue_clips c
         where c.exercise_id in (select i.exercise_id from session_items i join sessions s on s.id = i.session_id where s.program_id = ${programId})`,
  );
  const clipsOf = new Map<string, ClipRow[]>();
  for (const clip of clips) clipsOf.set(clip.exercise_id, [...(clipsOf.get(clip.exercise_id) ?? []), clip]);
  const resolved = items.map((item) => ({
    item,
    resolution: resolveRecipe({
      exerciseId: item.exercise_id,
      language,
      dose: item.dose,
      source:
        item.sha256 === null || item.duration_ms === null
          ? null
          : { sha256: item.sha256, durationMs: item.duration_ms },
      marks: item.rep_marks,
      clips: clipsOf.get(item.exercise_id) ?? [],
    }),
  }));
  const problems = resolved.flatMap(({ item, resolution }) =>
    resolution.ok
      ? []
      : [
          {
            path: `${item.session_title}, item ${item.position + 1}`,
            message: resolution.sentence,
            code: resolution.code,
          },
        ],
  );
  if (problems.length > 0) throw new AppError('not_publishable', { issues: problems });
  return resolved.flatMap(({ item, resolution }) => (resolution.ok ? [resolvedItem(item, resolution)] : []));
}

const resolvedItem = (item: ItemRow, { recipe, hash }: Resolution & { ok: true }): ResolvedItem => ({
  itemId: item.item_id,
  exerciseId: item.exercise_id,
  recipe,
  hash,
});

/**
 * Inserts the renders that do not exist yet, with their first history row and their place in the fair order: one round
 * after the other in playing order, so that what comes first is ready first. Inserted by hash, so that two publishes of
 * the same recipes lock them in the same order.
 */
async function insertMissing(
  tx: Executor,
  items: readonly ResolvedItem[],
  language: string,
  by: string,
): Promise<QueuedRender[]> {
  const distinct = [...new Map(items.map((item) => [item.hash, item])).values()];
  const given = distinct.map((item, nth) => ({
    id: uuidv7(),
    nth,
    exercise_id: item.exerciseId,
    hash: item.hash,
    recipe: item.recipe,
  }));
  const inserted = await rows<{ id: string; recipe_hash: string; generation: number }>(
    tx,
    sql`with given as (
      select * from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as x(id uuid, nth int, exercise_id uuid, hash text, recipe jsonb)
    ), next as materialized (
      select ${virtualNow} as round, ${nextTag(sql`${by}::text`)} as tag
    ), inserted as (
      insert into exercise_renders (id, exercise_id, recipe_hash, language, recipe, fair_key, enqueued_round, fair_tag)
      select g.id, g.exercise_id, g.hash, ${language}, g.recipe, ${by}, next.round,
             next.tag - 1 + row_number() over (order by g.nth)
        from given g cross join next
       where not exists (select from exercise_renders r where r.exercise_id = g.exercise_id and r.recipe_hash = g.hash and r.language = ${language})
       order by g.hash
      on conflict on constraint exercise_renders_key do nothing
      returning *
    ), logged as (
      insert into render_events (render_id, generation, to_status, attempt, cause)
      select id, generation, status, attempts, 'published' from inserted
    )
    select id, recipe_hash, generation from inserted`,
  );
  return inserted.map((row) => ({ id: row.id, recipeHash: row.recipe_hash, generation: row.generation }));
}

async function countRenders(tx: Executor, programId: string): Promise<PublishCounts> {
  const [counts] = await rows<Record<keyof PublishCounts, string>>(
    tx,
    sql`select count(*) as total,
               count(*) filter (where status = 'ready') as ready,
               count(*) filter (where status = 'pending') as queued,
               count(*) filter (where status in ('rendering', 'transcoding')) as "inProgress",
               count(*) filter (where status = 'failed') as failed
          from exercise_renders where id in (${rendersOf(programId)})`,
  );
  return {
    total: Number(counts?.total ?? 0),
    ready: Number(counts?.ready ?? 0),
    queued: Number(counts?.queued ?? 0),
    inProgress: Number(counts?.inProgress ?? 0),
    failed: Number(counts?.failed ?? 0),
  };
}
