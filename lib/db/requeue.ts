import { type SQL, sql } from 'drizzle-orm';
import type { QueuedRender } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { move } from './move.ts';

export interface RequeueOptions {
  /** Which of the selected ones: those that failed, or those that are ready and are to be made again all the same. */
  from: 'failed' | 'ready';
  cause: string;
  /** Give up the video of the old generation: where what Bunny made of it may be why it is wanted anew. */
  forgetVideo: boolean;
}

/**
 * Starts a new generation of renders among those that `where` selects (as `r`): a deliberate retry, with a fresh count
 * of attempts and a job id that the queue has never seen.
 */
export async function requeueRenders(
  db: Executor,
  where: SQL,
  { from, cause, forgetVideo }: RequeueOptions,
): Promise<QueuedRender[]> {
  const requeued = await move(db, 'requeue', {
    where: sql`r.status = ${from} and ${where}`,
    set: sql`dispatched_at = null, mirrored_priority = null, not_before = null, error_code = null, error_message = null,
      ready_at = null${forgetVideo ? sql`, video_guid = null` : sql``}`,
    cause,
  });
  return requeued.map(({ id, recipeHash, generation, fairTag, urgent }) => ({
    id,
    recipeHash,
    generation,
    fairTag,
    urgent,
  }));
}
