import { randomUUID } from 'node:crypto';
import type { Permit } from '../../../lib/cache/limiter.ts';
import type { Render } from '../../../lib/db/move.ts';
import { retryConflict } from '../../../lib/db/outage.ts';
import {
  claimRender,
  deadLetter,
  findExerciseOwner,
  findRender,
  handBack,
  markUploaded,
  recordVideo,
  retryRender,
} from '../../../lib/db/renders.ts';
import { backoffMs, decideAfterFailure } from '../../../lib/domain/render-states.ts';
import { assetPath } from '../../../lib/domain/resolve.ts';
import { AppError, toAppError } from '../../../lib/errors.ts';
import type { ComposeDone, ComposeRequest } from '../../../lib/media/contract.ts';
import { done, later, type Outcome } from '../../../lib/queue/jobs.ts';
import type { Handler, StopCause } from '../../../lib/queue/run-jobs.ts';
import type { WorkerDeps } from '../deps.ts';
import { type HeldLease, holdLease, type StopReason } from '../lease.ts';

/** Media is full, going away, or not there at all: not the render's fault, so not an attempt. */
const BACKPRESSURE = new Set(['media_busy', 'media_draining', 'media_unreachable']);
const BACKPRESSURE_MS = 2_000;
/** How long a slot that media did not have counts as taken; by then it has been looked at again. */
const MISSING_SLOT_MS = 5_000;

/** Clocks differ: a render that is not due yet is not asked for again in a hurry. */
const SOONEST_MS = 250;

/**
 * Bakes the render of a job, if it is there to be claimed; a job whose render is not claimable has nothing to do. Nothing
 * is claimed before there is a permit: what waits for media stays pending, and a crash meanwhile costs no attempt.
 */
export function renderHandler(deps: WorkerDeps): Handler<'render'> {
  return async (payload, signal) => {
    const permit = await deps.permits.acquire(signal);
    if (!permit) return later(signal.reason as StopCause, 0);
    try {
      const token = randomUUID();
      const claim = {
        id: payload.renderId,
        generation: payload.generation,
        token,
        by: deps.config.WORKER_NAME,
        leaseMs: deps.config.RENDER_LEASE_MS,
      };
      const claimed = await retryConflict(() => claimRender(deps.database.db, claim));
      deps.metrics.claims.inc({ result: claimed ? 'claimed' : 'not-claimable' });
      return claimed
        ? await bake(deps, claimed, { token, permit, jobSignal: signal })
        : await notClaimable(deps, payload);
    } finally {
      permit.release();
    }
  };
}

/** A render that waits for a later attempt keeps its job; anything else is somebody else's or finished. */
async function notClaimable(
  { database }: WorkerDeps,
  payload: { renderId: string; generation: number },
): Promise<Outcome> {
  const render = await findRender(database.db, payload.renderId);
  const waits = render?.status === 'pending' && render.generation === payload.generation && render.notBefore;
  return waits
    ? later('not due yet', Math.max(SOONEST_MS, waits.getTime() - Date.now()))
    : done(render ? `not claimable: ${render.status}` : 'no such render');
}

async function bake(
  deps: WorkerDeps,
  render: Render,
  { token, permit, jobSignal }: { token: string; permit: Permit; jobSignal: AbortSignal },
): Promise<Outcome> {
  const { config, database, metrics } = deps;
  const { target } = permit;
  const log = deps.log.child({ renderId: render.id, recipeHash: render.recipeHash, attempt: render.attempts, target });
  const lease = holdLease({ database, config, log }, { id: render.id, token });
  const stopWithJob = () => lease.stop(jobSignal.reason as StopCause);
  jobSignal.addEventListener('abort', stopWithJob, { once: true });
  if (jobSignal.aborted) stopWithJob();
  const elapsed = metrics.bakeSeconds.startTimer();
  try {
    log.info('bake started');
    const made = await compose(deps, render, target, lease);
    // Bunny may have finished an adopted video long ago, and will not call again.
    const deadlineMs = made.resumed ? 0 : config.TRANSCODE_DEADLINE_MS;
    const uploaded = await lease.write(() => markUploaded(database.db, lease, made, deadlineMs));
    if (!uploaded) throw new AppError('lease_lost');
    elapsed();
    metrics.ends.inc({ end: 'uploaded', code: '' });
    log.info({ segments: made.segments, videoGuid: made.videoGuid, resumed: made.resumed }, 'bake uploaded');
    return done('uploaded');
  } catch (thrown) {
    return await settleFailure(deps, render, { lease, permit }, toAppError(thrown), log);
  } finally {
    jobSignal.removeEventListener('abort', stopWithJob);
    lease.release();
  }
}

async function compose(deps: WorkerDeps, render: Render, target: string, lease: HeldLease): Promise<ComposeDone> {
  const request = await composeRequestOf(deps, render);
  let recording: Promise<void> = Promise.resolve();
  const result = await deps.media.composeRender(target, request, {
    signal: lease.signal,
    silenceMs: deps.config.RENDER_SILENCE_MS,
    onLine: (line) => {
      if (line.type === 'progress') lease.progress = { stage: line.stage, percent: line.percent };
      if (line.type === 'video') {
        const video = { guid: line.guid, masterSha256: line.masterSha256, collectionId: line.collectionId };
        // A failed note is no reason to stop: `uploaded` writes the guid again.
        recording = recordVideo(deps.database.db, lease, video).then(
          (kept) => (kept ? undefined : lease.stop('lease-lost')),
          (err) => deps.log.warn({ err, renderId: render.id }, 'video not noted'),
        );
      }
    },
  });
  await recording;
  return result;
}

async function composeRequestOf({ database }: WorkerDeps, render: Render): Promise<ComposeRequest> {
  const owner = await findExerciseOwner(database.db, render.exerciseId);
  if (!owner) throw new AppError('source_missing', { sentence: 'The exercise does not exist any more.' });
  const contents = new Set([render.recipe.source.sha256, ...Object.values(render.recipe.clips)]);
  return {
    renderId: render.id,
    recipeHash: render.recipeHash,
    recipe: render.recipe,
    assets: [...contents].map((sha256) => ({ sha256, location: `zone:${assetPath(owner, sha256)}` })),
    // A row with a master and no video has given that video up.
    ...(render.masterSha256 && {
      resume: { masterSha256: render.masterSha256, ...(render.videoGuid && { videoGuid: render.videoGuid }) },
    }),
  };
}

/** Writes how a claimed render ended other than well. What stopped it is known from our own intent, never guessed. */
async function settleFailure(
  deps: WorkerDeps,
  render: Render,
  { lease, permit }: { lease: HeldLease; permit: Permit },
  error: AppError,
  log: WorkerDeps['log'],
): Promise<Outcome> {
  const { config, database, metrics } = deps;
  const stopped = lease.signal.aborted ? (lease.signal.reason as StopReason) : undefined;
  const count = (end: string) => metrics.ends.inc({ end, code: error.code });

  if (stopped === 'lease-lost' || error.code === 'lease_lost') {
    count('lease-lost');
    log.warn('lease lost, this bake is void');
    return done('lease lost');
  }
  if (stopped !== undefined) {
    await lease.write(() => handBack(database.db, lease, { cause: stopped }));
    count('hand-back');
    log.info({ cause: stopped }, 'bake handed back');
    return later(stopped, 0);
  }
  if (error.code.startsWith('media_')) deps.permits.lookAgain();
  if (BACKPRESSURE.has(error.code)) {
    // Jitter, so that all who were turned away do not come back together.
    const delayMs = Math.round((error.retryAfterMs ?? BACKPRESSURE_MS) * (1 + Math.random()));
    metrics.mediaRefusals.inc({ code: error.code });
    // A slot that was announced and is not there (its instance was started anew, say) must not be tried on and on.
    if (error.code === 'media_busy') permit.release(Math.min(delayMs, MISSING_SLOT_MS));
    await lease.write(() => handBack(database.db, lease, { cause: error.code, delayMs }));
    if (error.code === 'media_unreachable') log.error({ detail: error.detail }, 'media cannot be reached');
    count('hand-back');
    return later(error.code, delayMs);
  }
  const told = { code: error.code, message: error.message, detail: error.detail };
  if (decideAfterFailure(render, error.retryable) === 'retry') {
    const backoff = backoffMs(
      { baseMs: config.RENDER_BACKOFF_MS, maxMs: config.RENDER_BACKOFF_MAX_MS },
      render.attempts,
      Math.random(),
    );
    const delayMs = Math.max(backoff, error.retryAfterMs ?? 0);
    const kept = await lease.write(() => retryRender(database.db, lease, { error: told, delayMs }));
    count('retry');
    log.warn({ err: error, detail: error.detail, delayMs }, 'bake failed, to be tried again');
    return kept ? later(`retry: ${error.code}`, delayMs) : done('lease lost');
  }
  await lease.write(() => deadLetter(database.db, lease, told));
  deps.onChanged?.([lease.id]);
  count('dead-letter');
  log.error({ err: error, detail: error.detail }, 'bake failed for good');
  return done(`dead-letter: ${error.code}`);
}
