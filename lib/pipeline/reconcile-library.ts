import { countHashesWithoutRender, videosWithoutRender, whileUnclaimed } from '../db/reconcile.ts';
import { AppError, toAppError } from '../errors.ts';
import type { ListedVideo } from '../media/contract.ts';
import type { Run } from './reconcile-run.ts';

const VIDEOS_PER_PAGE = 500;
/** As many as media gives at once: for every page the zone tells all it holds. */
const STORED_PER_PAGE = 10_000;

/** A claim of a render of this hash waits for the deletion: well below the limit of a statement. */
const DELETE_MS = 10_000;

/** So many are deleted, whatever their share: a library may have begun with failures. */
const FEW = 5;

type Orphan = Pick<ListedVideo, 'guid' | 'title'> & { recipeHashPrefix: string };

/**
 * Goes through the library and deletes the videos of ours that no render knows, where they are old enough for no bake
 * to be about to tell of them. Where they are many, or most of ours, it deletes none: a database that was restored, or
 * another installation's, knows none of the videos that are there.
 */
export async function reconcileLibrary(run: Run): Promise<void> {
  const { deps, options, report } = run;
  const { orphans, ours } = await findOrphans(run);
  const limit = options.maxDeletions ?? Math.min(deps.config.RECONCILE_MAX_DELETIONS, Math.max(FEW, ours / 2));
  if (orphans.length > limit) {
    report.left['deletion-limit'] += orphans.length;
    deps.log.error({ orphans: orphans.length, ours }, 'too many videos have no render: is it the right database?');
    return;
  }
  for (const orphan of orphans) {
    if (options.signal.aborted) return;
    await removeOrphan(run, orphan);
  }
}

/** The orphans old enough, and how many videos are ours at all. */
async function findOrphans(run: Run): Promise<{ orphans: Orphan[]; ours: number }> {
  const { deps, options, report } = run;
  const { media, log } = deps;
  const { signal, videosPerPage: perPage = VIDEOS_PER_PAGE } = options;
  const orphans: Orphan[] = [];
  let ours = 0;
  let before = new Set<string>();
  for (let page = 1; !signal.aborted; page += 1) {
    let listed: Awaited<ReturnType<typeof media.listVideos>>;
    try {
      listed = await media.listVideos({ page, perPage }, signal);
    } catch (err) {
      log.warn({ err, page }, 'videos could not be listed');
      report.failed['video-list'] += 1;
      report.complete = false;
      break;
    }
    // A video made meanwhile pushes others onto the next page.
    const fresh = listed.videos.filter(({ guid }) => !before.has(guid));
    ours += fresh.filter(({ recipeHashPrefix }) => recipeHashPrefix !== null).length;
    orphans.push(...(await orphansAmong(run, fresh)));
    before = new Set(listed.videos.map(({ guid }) => guid));
    if (!listed.more) break;
  }
  return { orphans, ours };
}

async function orphansAmong({ deps, options, report }: Run, videos: readonly ListedVideo[]): Promise<Orphan[]> {
  report.seen.videos += videos.length;
  const ours = videos.flatMap(({ recipeHashPrefix, ...video }) =>
    recipeHashPrefix === null ? [] : [{ ...video, recipeHashPrefix }],
  );
  report.left['foreign-video'] += videos.length - ours.length;
  const unknown = await videosWithoutRender(
    deps.database.db,
    ours.map(({ guid }) => guid),
  );
  return ours.filter(({ guid, uploadedAt }) => {
    if (!unknown.has(guid)) return false;
    const age = uploadedAt === null ? null : Date.now() - Date.parse(uploadedAt);
    if (age === null) report.left['age-unknown'] += 1;
    else if (age < options.graceMs) report.left['within-grace'] += 1;
    else return true;
    return false;
  });
}

async function removeOrphan({ deps, options, report, done }: Run, video: Orphan): Promise<void> {
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
    return;
  }
  if (outcome === 'leased') report.left.leased += 1;
  if (outcome === true) done({ do: 'delete', videoGuid: guid, detail: video.title });
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
