import type { Queue } from 'bullmq';
import type { MirrorEntry, MirrorRows } from '../db/dispatch.ts';
import { renderJobId } from '../domain/render-states.ts';
import type { Logger } from '../log.ts';
import { JOBS, type JobPayload } from './jobs.ts';
import { withDeadline } from './queues.ts';

export interface Mirror {
  /**
   * Brings the jobs of these renders in line with their rows, after the commit that made them pending or changed their
   * place. Never throws. What Redis did not confirm within the deadline stays as it was, and the sweep makes up for it.
   * True where all was confirmed.
   */
  dispatch(renders: readonly { id: string }[]): Promise<boolean>;
  /**
   * Brings the whole queue in line with the rows: adds what should be in it, frees ids that a finished or ghost job
   * holds (BullMQ silently ignores an `add` of an id it still knows in any state), corrects priorities and takes out
   * what does not belong to the first any more. Answers how many jobs it touched; throws where Redis does not answer.
   */
  sweep(options: { staleMs: number }): Promise<number>;
}

export interface MirrorDeps {
  queue: Queue;
  rows: MirrorRows;
  log: Logger;
  /** For each exchange with Redis. Default 2 000. */
  deadlineMs?: number;
}

const TO_BE_TAKEN = ['waiting', 'prioritized', 'waiting-children'] as const;
const LIVE = [...TO_BE_TAKEN, 'active', 'delayed'] as const;
/** A delayed job is not among them: what the mirror adds is due, and an operator may have put it forward. */
const TO_BE_TAKEN_STATES = new Set<string>(TO_BE_TAKEN);

/** Jobs per exchange with Redis: few enough to be answered well within the deadline. */
const BATCH = 250;

function* batches<T>(all: readonly T[]): Generator<T[]> {
  for (let at = 0; at < all.length; at += BATCH) yield all.slice(at, at + BATCH);
}

const jobIdOf = ({ recipeHash, generation }: MirrorEntry) => renderJobId(recipeHash, generation);

/** Keeps the queue of renders a copy of the first pending rows. The rows are the truth; this may fail at any time. */
export function createMirror({ queue, rows, log, deadlineMs = 2_000 }: MirrorDeps): Mirror {
  const within = <T>(promise: Promise<T>) => withDeadline(promise, deadlineMs);

  const add = (entries: readonly MirrorEntry[]) =>
    within(
      queue.addBulk(
        entries.map((entry) => ({
          name: 'render',
          data: {
            renderId: entry.id,
            generation: entry.generation,
            recipeHash: entry.recipeHash,
          } satisfies JobPayload<'render'>,
          opts: { jobId: jobIdOf(entry), priority: entry.priority },
        })),
      ),
    );

  /** For jobs that were there already, where adding has changed nothing. One that is gone or running takes no harm. */
  const reprioritise = (entries: readonly MirrorEntry[]) =>
    within(
      Promise.all(
        entries.map(async (entry) => {
          const job = await queue.getJob(jobIdOf(entry));
          await job?.changePriority({ priority: entry.priority });
        }),
      ),
    );

  const put = async (entries: readonly MirrorEntry[], isThere: (entry: MirrorEntry) => boolean) => {
    await add(entries);
    await reprioritise(entries.filter((entry) => entry.told !== entry.priority && isThere(entry)));
  };

  /**
   * Answers those whose job lives. `remove` refuses a locked job (0), so a worker that has it keeps it; the active one of
   * a worker that died is not locked any more, and would stand in the way until BullMQ has found it stalled, which takes
   * up to three of its intervals. "unknown" may be a ghost: a hash in no list.
   */
  const freeDeadIds = async (entries: readonly MirrorEntry[]) => {
    const live = new Set<MirrorEntry>();
    const look = async (entry: MirrorEntry) => {
      const id = jobIdOf(entry);
      if (TO_BE_TAKEN_STATES.has(await queue.getJobState(id)) || (await queue.remove(id)) === 0) live.add(entry);
    };
    await within(Promise.all(entries.map(look)));
    return live;
  };

  /** A crash before the row is marked leaves one that seems to have a job: it is evicted again, or added when stale. */
  const evict = async (entries: readonly MirrorEntry[]) => {
    const removed = await within(Promise.all(entries.map((entry) => queue.remove(jobIdOf(entry)))));
    await rows.markEvicted(entries.filter((_, nth) => removed[nth] === 1));
  };

  /**
   * Renders that wait for a later attempt have delayed jobs, beside the first that are due. Those of the latest go where
   * there are too many, and come back when they are due.
   */
  const trimDelayed = async (delayed: number) => {
    if (delayed <= rows.max) return 0;
    const latest = await within(queue.getJobs(['delayed'], rows.max, rows.max + BATCH - 1, true));
    await within(Promise.all(latest.map((job) => queue.remove(job.id ?? ''))));
    return latest.length;
  };

  return {
    dispatch: async (renders) => {
      if (renders.length === 0) return true;
      try {
        const changes = await rows.changes(renders.map(({ id }) => id));
        const isKnown = ({ dispatched, told }: MirrorEntry) => dispatched || told !== null;
        const done: MirrorEntry[] = [];
        const waiting = batches(changes.filter(({ inside }) => inside));
        // Two at once share the batches: Redis adds one while the next is put together. A failure ends them for both.
        const putAll = async () => {
          for (const batch of waiting) {
            await put(batch, isKnown);
            done.push(...batch);
          }
        };
        const ends = await Promise.allSettled([putAll(), putAll()]);
        // One statement, however many were added; also for those before the batch that failed.
        await rows.markDispatched(done);
        for (const end of ends) if (end.status === 'rejected') throw end.reason;
        for (const batch of batches(changes.filter(({ inside }) => !inside))) await evict(batch);
        return true;
      } catch (err) {
        log.warn({ err, renders: renders.length, queue: JOBS.render.queue }, 'renders not mirrored; the sweep will');
        return false;
      }
    },
    sweep: async ({ staleMs }) => {
      // Nothing here pauses it, and a pause is kept in Redis alone, where nobody would look for the reason.
      if (await within(queue.isPaused())) {
        log.warn({ queue: JOBS.render.queue }, 'the queue was paused; it goes on');
        await within(queue.resume());
      }
      const dispatched = await rows.countDispatched();
      const counts = await within(queue.getJobCounts(...LIVE));
      const live = LIVE.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
      // Fewer jobs than rows that should have one: Redis has forgotten, and waiting until they are stale is no use.
      const changes = await rows.changes({ staleMs: live < dispatched ? 0 : staleMs });
      for (const batch of batches(changes.filter(({ inside }) => !inside))) await evict(batch);
      for (const batch of batches(changes.filter(({ inside }) => inside))) {
        const live = await freeDeadIds(batch);
        await put(batch, (entry) => live.has(entry));
        await rows.markDispatched(batch);
      }
      return changes.length + (await trimDelayed(counts.delayed ?? 0));
    },
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
