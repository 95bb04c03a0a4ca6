import type { Queue } from 'bullmq';
import { priorityOfTag, type QueuedRender, renderJobId } from '../domain/render-states.ts';
import type { Logger } from '../log.ts';
import { JOBS, type JobPayload } from './jobs.ts';
import { withDeadline } from './queues.ts';

export interface Mirror {
  /**
   * Adds jobs for rows that have just become pending. Never throws and takes at most its deadline: what Redis did not
   * confirm stays undispatched, and the sweep adds it later. True where all were confirmed.
   */
  dispatch(renders: readonly QueuedRender[]): Promise<boolean>;
  /**
   * The same for rows that the queue should have had: jobs still alive are left alone, ids that a finished or ghost job
   * holds are freed first, because BullMQ silently ignores an `add` of an id it still knows in any state.
   */
  redispatch(renders: readonly QueuedRender[]): Promise<boolean>;
}

export interface MirrorDeps {
  queue: Queue;
  /** Stamps the rows; called only after Redis has confirmed. */
  markDispatched: (renders: readonly QueuedRender[]) => Promise<void>;
  log: Logger;
  deadlineMs?: number;
}

const LIVE_STATES = new Set(['active', 'waiting', 'delayed', 'prioritized', 'waiting-children']);

/** Before every tag: the renders that a patient is waiting for right now. */
const URGENT_PRIORITY = 1;

export function createMirror({ queue, markDispatched, log, deadlineMs = 2_000 }: MirrorDeps): Mirror {
  const add = async (renders: readonly QueuedRender[]) => {
    const jobs = renders.map((render) => ({
      name: 'render',
      data: {
        renderId: render.id,
        generation: render.generation,
        recipeHash: render.recipeHash,
      } satisfies JobPayload<'render'>,
      opts: {
        jobId: renderJobId(render.recipeHash, render.generation),
        priority: render.urgent ? URGENT_PRIORITY : priorityOfTag(render.fairTag),
      },
    }));
    await withDeadline(queue.addBulk(jobs), deadlineMs);
    await markDispatched(renders);
  };

  const freeDeadIds = (renders: readonly QueuedRender[]) =>
    withDeadline(
      Promise.all(
        renders.map(async (render) => {
          const jobId = renderJobId(render.recipeHash, render.generation);
          const state = await queue.getJobState(jobId);
          // `remove` refuses a locked job, so a worker that took it meanwhile keeps it. "unknown" may be a ghost: a hash in no list.
          if (!LIVE_STATES.has(state)) await queue.remove(jobId);
        }),
      ),
      deadlineMs,
    );

  const attempt = async (renders: readonly QueuedRender[], work: () => Promise<void>) => {
    if (renders.length === 0) return true;
    try {
      await work();
      return true;
    } catch (err) {
      log.warn({ err, renders: renders.length, queue: JOBS.render.queue }, 'renders not mirrored; the sweep will');
      return false;
    }
  };

  return {
    dispatch: (renders) => attempt(renders, () => add(renders)),
    redispatch: (renders) =>
      attempt(renders, async () => {
        await freeDeadIds(renders);
        await add(renders);
      }),
  };
}

/** Tells the workers of a stored webhook. Best effort: the replay sweep applies what was never told. */
export async function announceWebhook(queue: Queue, eventId: string, log: Logger, deadlineMs = 500): Promise<void> {
  try {
    await withDeadline(
      queue.add('webhook', { eventId } satisfies JobPayload<'webhook'>, { jobId: `webhook-${eventId}` }),
      deadlineMs,
    );
  } catch (err) {
    log.warn({ err, eventId }, 'webhook not announced; the sweep will apply it');
  }
}
