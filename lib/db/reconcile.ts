import { and, asc, gt, isNotNull, sql } from 'drizzle-orm';
import type { Db, Executor } from './client.ts';
import type { Render } from './move.ts';
import { retryConflict } from './outage.ts';
import { requeueRenders } from './requeue.ts';
import { rows } from './rows.ts';
import { exerciseRenders } from './schema/index.ts';

const r = exerciseRenders;

/** Renders that name a video, in the order of their ids, from behind `after` on. */
export function rendersWithVideo(
  db: Executor,
  { after, limit }: { after: string | null; limit: number },
): Promise<Render[]> {
  return db
    .select()
    .from(r)
    .where(and(isNotNull(r.videoGuid), after === null ? undefined : gt(r.id, after)))
    .orderBy(asc(r.id))
    .limit(limit);
}

/** A render as it was examined: where it has moved on since, nothing is done to it. */
export type Examined = Pick<Render, 'id' | 'generation' | 'videoGuid'>;

const asExamined = (renders: readonly Examined[]) =>
  JSON.stringify(renders.map(({ id, generation, videoGuid }) => ({ id, generation, video_guid: videoGuid })));

/** Starts a new generation of those that are still ready as they were examined; answers the ids of these. */
export async function rebakeReady(
  db: Db,
  renders: readonly Examined[],
  { forgetVideo }: { forgetVideo: boolean },
): Promise<Set<string>> {
  if (renders.length === 0) return new Set();
  const asTheyWere = sql`(r.id, r.generation, r.video_guid) in (
    select id, generation, video_guid
      from jsonb_to_recordset(${asExamined(renders)}::jsonb) as given(id uuid, generation int, video_guid text))`;
  const requeued = await retryConflict(() =>
    db.transaction((tx) => requeueRenders(tx, asTheyWere, { from: 'ready', cause: 'reconcile', forgetVideo })),
  );
  return new Set(requeued.map(({ id }) => id));
}

/**
 * Notes the collections that Bunny has these videos in, where the row names none; answers the ids of the rows written.
 * A claimed row is its worker's to write.
 */
export async function restoreCollections(
  db: Executor,
  found: readonly { id: string; videoGuid: string; collectionId: string }[],
): Promise<Set<string>> {
  if (found.length === 0) return new Set();
  const given = JSON.stringify(
    found.map(({ id, videoGuid, collectionId }) => ({ id, video_guid: videoGuid, collection_id: collectionId })),
  );
  const restored = await rows<{ id: string }>(
    db,
    sql`with lacking as (
      select r.id, given.collection_id from exercise_renders r
        join jsonb_to_recordset(${given}::jsonb) as given(id uuid, video_guid text, collection_id text)
          on r.id = given.id and r.video_guid = given.video_guid
       where r.video_collection_id is null and r.status <> 'rendering'
       order by r.recipe_hash
         for no key update of r
    )
    update exercise_renders r set video_collection_id = lacking.collection_id, updated_at = now()
      from lacking where r.id = lacking.id
    returning r.id`,
  );
  return new Set(restored.map(({ id }) => id));
}

/** Which of these videos no render names. */
export async function videosWithoutRender(db: Executor, guids: readonly string[]): Promise<Set<string>> {
  const found = await rows<{ guid: string }>(
    db,
    sql`select guid from unnest(${sql.param([...guids])}::text[]) as guid
         where not exists (select from exercise_renders r where r.video_guid = guid)`,
  );
  return new Set(found.map(({ guid }) => guid));
}

/** How many of these recipe hashes no render has. */
export async function countHashesWithoutRender(db: Executor, hashes: readonly string[]): Promise<number> {
  const [row] = await rows<{ count: string }>(
    db,
    sql`select count(*) as count from unnest(${sql.param([...hashes])}::text[]) as hash
         where not exists (select from exercise_renders r where r.recipe_hash = hash)`,
  );
  return Number(row?.count ?? 0);
}

/**
 * Runs `work` while no render names the video and none whose hash begins with `hashPrefix` is being baked, and keeps
 * it so until `work` has ended: a claim of such a render waits, because its bake may find the video by its title and
 * take it. Without `work` being run: `known` where a render names the video, `leased` where one is being baked (also
 * under a lease that has run out, as long as nobody has taken it away: its worker may revive it).
 */
export function whileUnclaimed<T>(
  db: Db,
  video: { guid: string; hashPrefix: string },
  work: () => Promise<T>,
): Promise<T | 'known' | 'leased'> {
  return db.transaction(async (tx) => {
    const waiting = await rows<{ status: string }>(
      tx,
      sql`select status from exercise_renders
           where status in ('pending', 'rendering') and starts_with(recipe_hash, ${video.hashPrefix})
           order by recipe_hash for no key update`,
    );
    if (waiting.some(({ status }) => status === 'rendering')) return 'leased';
    const unknown = await videosWithoutRender(tx, [video.guid]);
    return unknown.has(video.guid) ? work() : 'known';
  });
}
