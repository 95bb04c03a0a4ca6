import { type SQL, sql } from 'drizzle-orm';
import type { QueuedRender } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { bumpAwaited, lockFairKey, placesAnew } from './fairness.ts';
import { move } from './move.ts';

export interface RequeueOptions {
  /** Which of the selected ones: those that failed, or those that are ready and are to be made again all the same. */
  from: 'failed' | 'ready';
  cause: string;
  /** Give up the video of the old generation: where what Bunny made of it may be why it is wanted anew. */
  forgetVideo: boolean;
  /** Among whose renders they queue, where that is known; else among those of whoever asked for them first. */
  by?: string;
}

/**
 * Starts a new generation of renders among those that `where` selects (as `r`): a deliberate retry, with a fresh count
 * of attempts, a place at the end of the fair order and a job id that the queue has never seen. What a patient is
 * waiting for is bumped at once. A constant number of statements, to be run in a transaction.
 */
export async function requeueRenders(db: Executor, where: SQL, options: RequeueOptions): Promise<QueuedRender[]> {
  if (options.by !== undefined) await lockFairKey(db, options.by);
  const requeued = await startGeneration(db, where, options);
  const ids = requeued.map(({ id }) => id);
  await bumpAwaited(db, sql`r.id = any(${sql.param(ids)}::uuid[])`);
  return requeued;
}

/** The requeue without the bump, for publish, which bumps all that the programme needs together. */
export async function startGeneration(
  db: Executor,
  where: SQL,
  { from, cause, forgetVideo, by }: RequeueOptions,
): Promise<QueuedRender[]> {
  const requeued = await move(db, 'requeue', {
    where: sql`r.status = ${from} and ${where}`,
    set: sql`urgent = false, dispatched_at = null, mirrored_priority = null, not_before = null, error_code = null,
      error_message = null, ready_at = null${forgetVideo ? sql`, video_guid = null` : sql``}`,
    cause,
    places: placesAnew(by),
  });
  return requeued.map(({ id, recipeHash, generation }) => ({ id, recipeHash, generation }));
}
