import { countHashesWithoutRender, videosWithoutRender, whileUnclaimed } from '../db/reconcile.ts';
import { AppError, toAppError } from '../errors.ts';
import type { ListedVideo } from '../media/contract.ts';
import type { Run } from './reconcile-run.ts';

const VIDEOS_PER_PAGE = 500;
/** As many as media gives at once: for every page the zone tells all it holds. */
const STORED_PER_PAGE = 10_000;

/** A claim of a render of this hash waits for the deletion: well below the limit of a statement. */
const DELETE_MS = 10_000;

/**
 * Goes through the library and deletes the videos of ours that no render knows, where they are old enough for no bake
 * to be about to tell of them.
 */
export async function reconcileLibrary(run: Run): Promise<void> {
  const { deps, options, report } = run;
  const { media, log } = deps;
  const { signal, videosPerPage: perPage = VIDEOS_PER_PAGE } = options;
  let before = new Set<string>();
  for (let page = 1; !signal.aborted; ) {
    let listed: Awaited<ReturnType<typeof media.listVideos>>;
    try {
      listed = await media.listVideos({ page, perPage }, signal);
    } catch (err) {
      log.warn({ err, page }, 'videos could not be listed');
      report.failed['video-list'] += 1;
      report.complete = false;
      return;
    }
    // A video made meanwhile pushes others onto the next page.
    const fresh = listed.videos.filter(({ guid }) => !before.has(guid));
    const deleted = await settleVideos(run, fresh);
    // One deleted pulls others onto this one, so that it is looked at again.
    before = new Set([...listed.videos.map(({ guid }) => guid), ...(deleted > 0 ? before : [])]);
    if (deleted > 0) continue;
    if (!listed.more) return;
    page += 1;
  }
}

/** Answers how many of them were deleted at Bunny. */
async function settleVideos(run: Run, videos: readonly ListedVideo[]): Promise<number> {
  const { deps, options, report } = run;
  report.seen.videos += videos.length;
  const ours = videos.flatMap(({ recipeHashPrefix, ...video }) =>
    recipeHashPrefix === null ? [] : [{ ...video, recipeHashPrefix }],
  );
  report.left['foreign-video'] += videos.length - ours.length;
  const unknown = await videosWithoutRender(
    deps.database.db,
    ours.map(({ guid }) => guid),
  );
  let deleted = 0;
  for (const video of ours) {
    if (!unknown.has(video.guid) || options.signal.aborted) continue;
    const age = video.uploadedAt === null ? null : Date.now() - Date.parse(video.uploadedAt);
    if (age === null) report.left['age-unknown'] += 1;
    else if (age < options.graceMs) report.left['within-grace'] += 1;
    else if (await removeOrphan(run, video)) deleted += 1;
  }
  return deleted;
}

/** True where the video was there and is not any more. */
async function removeOrphan(
  { deps, options, report, done }: Run,
  video: { guid: string; title: string; recipeHashPrefix: string },
): Promise<boolean> {
  const { database, media, log } = deps;
  const { guid, recipeHashPrefix: hashPrefix } = video;
  // Not thrown, or it could not be told from what Postgres throws.
  const remove = async (): Promise<boolean | AppError> => {
    if (options.dryRun) return true;
    try {
      return await media.deleteVideo(guid, AbortSignal.any([options.signal, AbortSignal.timeout(DELETE_MS)]));
    } catch (thrown) {
      return toAppError(thrown);
    }
  };
  const outcome = await whileUnclaimed(database.db, { guid, hashPrefix }, remove);
  if (outcome instanceof AppError) {
    if (outcome.code === 'conflict') report.left['foreign-video'] += 1;
    else report.failed.deletion += 1;
    log.warn({ err: outcome, detail: outcome.detail, guid }, 'video not deleted');
    return false;
  }
  if (outcome === 'leased') report.left.leased += 1;
  if (outcome !== true) return false;
  done({ do: 'delete', videoGuid: guid, detail: video.title });
  return !options.dryRun;
}

/**
 * Counts the stored renders that no row knows and deletes nothing: their paths are content addresses that cannot be in
 * anybody's way, and a row that comes back (from a backup, by a publish) finds its bake done.
 */
export async function reconcileStorage({ deps, options, report }: Run): Promise<void> {
  const { database, media, log } = deps;
  for (let after = ''; !options.signal.aborted; ) {
    let stored: Awaited<ReturnType<typeof media.listStored>>;
    try {
      stored = await media.listStored({ after, limit: STORED_PER_PAGE }, options.signal);
    } catch (err) {
      log.warn({ err }, 'storage could not be listed');
      report.failed['storage-list'] += 1;
      report.complete = false;
      return;
    }
    report.seen.stored += stored.recipeHashes.length;
    report.left['stored-without-render'] += await countHashesWithoutRender(database.db, stored.recipeHashes);
    const last = stored.recipeHashes.at(-1);
    if (!stored.more || last === undefined) return;
    after = last;
  }
}
