import PQueue from 'p-queue';
import type { Render } from '../db/move.ts';
import { rebakeReady, rendersWithVideo, restoreCollections } from '../db/reconcile.ts';
import { findExerciseOwner } from '../db/renders.ts';
import { assetPath } from '../domain/resolve.ts';
import { judgeTranscode } from '../domain/transcode.ts';
import { toAppError } from '../errors.ts';
import { MAX_CHECKED, type RebuildAnswer, type VideoStatus } from '../media/contract.ts';
import type { Failure } from './reconcile-report.ts';
import type { Run } from './reconcile-run.ts';
import { settleTranscode, transcodeAgeMs } from './transcode.ts';

/** Questions about single videos under way at once. */
const ASKED_AT_ONCE = 4;

/** Bytes that have landed show in a video's status after about 0.2 s (measured). */
const SETTLING_MS = 10_000;

/** A render that names a video, and what Bunny says of that. */
type Seen = Render & { videoGuid: string; video: VideoStatus };

const actionOn = ({ id, recipeHash, videoGuid }: Seen) => ({ renderId: id, recipeHash, videoGuid });

/**
 * Goes through the renders that name a video, in pages. Bunny is asked for each video by its guid, never judged by a
 * list: lists lag and shift. Breaks off where of a whole page no video could be asked for.
 */
export async function reconcileRenders(run: Run): Promise<void> {
  const { deps, options, report } = run;
  for (let after: string | null = null; !options.signal.aborted; ) {
    const page: Render[] = await rendersWithVideo(deps.database.db, { after, limit: MAX_CHECKED });
    const last = page.at(-1);
    if (!last) return;
    after = last.id;
    const seen = await askForVideos(run, page);
    report.seen.renders += seen.length;
    if (seen.length === 0) {
      report.complete = false;
      return;
    }
    await settlePage(run, seen);
  }
}

async function askForVideos(run: Run, page: readonly Render[]): Promise<Seen[]> {
  const { media } = run.deps;
  const queue = new PQueue({ concurrency: ASKED_AT_ONCE });
  const asked = await queue.addAll(
    page.map((render) => async (): Promise<Seen | undefined> => {
      const { videoGuid } = render;
      if (videoGuid === null) return undefined;
      const video = await orFailure(run, 'video', render, () => media.videoStatus(videoGuid, run.options.signal));
      return video && { ...render, videoGuid, video };
    }),
  );
  return asked.filter((each) => each !== undefined);
}

async function settlePage(run: Run, seen: readonly Seen[]): Promise<void> {
  const ready = seen.filter(({ status }) => status === 'ready');
  for (const render of seen) {
    if (render.status === 'transcoding') await settleTranscoding(run, render);
    const waits = render.status === 'pending' || render.status === 'rendering';
    if (waits && render.video.state === 'missing') run.report.left['attempt-to-come'] += 1;
  }
  const isLost = ({ video }: Seen) => ['missing', 'created', 'failed'].includes(video.state);
  await renew(run, ready.filter(isLost), 'new-video', ({ video }) => `the video is ${video.state}`);
  await settleArtefacts(
    run,
    ready.filter((render) => !isLost(render)),
  );
  await settleCollections(run, seen);
}

/** As webhook and backstop do, with the answer that Bunny has just given. */
async function settleTranscoding(run: Run, render: Seen): Promise<void> {
  const { deps, options, report, done } = run;
  const { video, durationMs } = render;
  if (video.state === 'created' && transcodeAgeMs(render) < SETTLING_MS) {
    report.left['just-uploaded'] += 1;
    return;
  }
  const verdict = options.dryRun
    ? foretold(run, render, durationMs ?? 0)
    : await orFailure(run, 'video', render, () =>
        settleTranscode({ ...deps, media: { videoStatus: async () => video } }, render, 'reconcile'),
      );
  if (verdict === 'wait') report.left['in-flight'] += 1;
  else if (verdict) done({ do: verdict, ...actionOn(render), detail: `the video is ${video.state}` });
}

/** What `settleTranscode` would make of it. */
function foretold({ deps: { config } }: Run, render: Seen, durationMs: number) {
  const { kind } = judgeTranscode(render.video, { durationMs }, config.READY_ON);
  return kind === 'wait' && transcodeAgeMs(render) > config.TRANSCODE_GIVE_UP_MS ? 'lost' : kind;
}

/** Starts a new generation of ready renders, as many as one run may. */
async function renew(
  { deps, options, report, done }: Run,
  renders: readonly Seen[],
  how: 'new-video' | 'rebake',
  why: (render: Seen) => string,
): Promise<void> {
  const { config, database, log } = deps;
  const room = config.RECONCILE_MAX_REBAKES - report.repaired['new-video'] - report.repaired.rebake;
  const allowed = renders.slice(0, Math.max(0, room));
  if (allowed.length < renders.length) {
    report.left['rebake-limit'] += renders.length - allowed.length;
    log.error(
      { limit: config.RECONCILE_MAX_REBAKES },
      'too many ready renders lack something: is it the right library?',
    );
  }
  const renewed = options.dryRun
    ? new Set(allowed.map(({ id }) => id))
    : await rebakeReady(database.db, allowed, { forgetVideo: how === 'new-video' });
  if (!options.dryRun && renewed.size > 0) deps.onChanged?.([...renewed]);
  for (const render of allowed) {
    if (renewed.has(render.id)) done({ do: how, ...actionOn(render), detail: why(render) });
    else report.left['moved-on'] += 1;
  }
}

/** Rebuilds the manifests of renders that are not stored whole; has those baked again that lack more than that. */
async function settleArtefacts(run: Run, renders: readonly Seen[]): Promise<void> {
  const { deps, options, report, done } = run;
  if (renders.length === 0) return;
  // The database lets no row be ready without its master.
  const asked = renders.map(({ recipeHash, masterSha256 }) => ({ recipeHash, masterSha256: masterSha256 ?? '' }));
  const states = await deps.media.checkArtefacts({ renders: asked }, options.signal).then(
    (answer) => answer.states,
    (err) => {
      deps.log.warn({ err }, 'artefacts could not be checked');
      return asked.map(() => 'unknown' as const);
    },
  );
  report.failed.artefacts += states.filter((state) => state === 'unknown').length;
  const missing = new Map<string, string>();
  for (const [index, render] of renders.entries()) {
    if (states[index] !== 'broken' || options.signal.aborted) continue;
    const answer = await orFailure(run, 'manifest', render, () => rebuild(run, render));
    if (answer?.outcome === 'rebuilt') done({ do: 'manifest', ...actionOn(render) });
    if (answer?.outcome === 'incomplete') missing.set(render.id, answer.missing.join(', '));
  }
  await renew(
    run,
    renders.filter(({ id }) => missing.has(id)),
    'rebake',
    ({ id }) => `missing: ${missing.get(id)}`,
  );
}

async function rebuild({ deps, options }: Run, render: Render): Promise<RebuildAnswer> {
  const { recipe, recipeHash, masterSha256, durationMs, baselines, posterUrl, captionsUrl, warnings } = render;
  if (masterSha256 === null || durationMs === null || posterUrl === null) {
    return { outcome: 'incomplete', missing: ['what the row should say of it'] };
  }
  const owner = await findExerciseOwner(deps.database.db, render.exerciseId);
  const clips = owner ? [...new Set(Object.values(recipe.clips))] : [];
  return deps.media.rebuildManifest(
    {
      ...{ recipe, recipeHash, masterSha256, durationMs, baselines, posterUrl, captionsUrl, warnings },
      assets: clips.map((sha256) => ({ sha256, location: `zone:${owner ? assetPath(owner, sha256) : ''}` })),
      dryRun: options.dryRun,
    },
    options.signal,
  );
}

async function settleCollections({ deps, options, done }: Run, seen: readonly Seen[]): Promise<void> {
  const found = seen.flatMap((render) => {
    const { collectionId } = render.video;
    const lacks = render.videoCollectionId === null && render.status !== 'rendering' && collectionId !== null;
    return lacks ? [{ render, id: render.id, videoGuid: render.videoGuid, collectionId }] : [];
  });
  const restored = options.dryRun
    ? new Set(found.map(({ id }) => id))
    : await restoreCollections(deps.database.db, found);
  for (const { render, collectionId } of found) {
    if (restored.has(render.id)) done({ do: 'collection', ...actionOn(render), detail: collectionId });
  }
}

/** Undefined, counted and logged, where somebody could not be asked. */
async function orFailure<T>(
  { deps, report }: Run,
  what: Failure,
  { id }: Pick<Render, 'id'>,
  ask: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await ask();
  } catch (thrown) {
    const error = toAppError(thrown);
    report.failed[what] += 1;
    deps.log.warn({ err: error, detail: error.detail, renderId: id }, `${what} could not be asked for`);
    return undefined;
  }
}
