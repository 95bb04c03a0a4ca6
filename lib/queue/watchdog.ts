import type { Queue } from 'bullmq';
import type { Logger } from '../log.ts';
import { withDeadline } from './queues.ts';

export interface WatchOptions {
  /** How long a consumer may take nothing, though there is something to take, until it counts as stalled. */
  stallMs: number;
  /** Jobs taken so far. */
  taken: () => number;
  hasFreeSlot: () => boolean;
  /** Whether there are jobs that anybody may take right now. Throws where that cannot be told. */
  hasWork: () => Promise<boolean>;
  /** Called when the consumer is found stalled, `times` in a row. */
  onStalled: (times: number) => void;
  /** A job was taken, or there is nothing left to take. */
  onRecovered: () => void;
  log: Logger;
}

export interface Watch {
  isStalled(): boolean;
  close(): void;
}

/** Looks so often within the time that makes a stall. */
const LOOKS = 4;

/**
 * Notices a consumer that has silently stopped: a half-open connection or a failover can leave BullMQ waiting for an
 * answer that never comes, with no error, its `isRunning()` true (bullmq #4378, #648; langfuse #15509). The only proof
 * of life is that jobs are taken while there are some.
 */
export function watchConsumption(options: WatchOptions): Watch {
  const { stallMs, log } = options;
  let seen = options.taken();
  /** Since when there has been work that a free slot did not take. */
  let idleSince: number | undefined;
  let times = 0;
  let looking = false;

  const recovered = () => {
    if (times > 0) options.onRecovered();
    times = 0;
  };
  const look = async () => {
    const taken = options.taken();
    if (taken !== seen) recovered();
    if (taken !== seen || !options.hasFreeSlot()) {
      seen = taken;
      idleSince = undefined;
      return;
    }
    const askedAt = performance.now();
    const hasWork = await options.hasWork();
    if (!hasWork) recovered();
    if (!hasWork || options.taken() !== seen) {
      idleSince = undefined;
      return;
    }
    idleSince ??= askedAt;
    if (performance.now() - idleSince < stallMs) return;
    // Whoever takes its place gets the same time.
    idleSince = undefined;
    times += 1;
    options.onStalled(times);
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    look()
      .catch((err) => {
        // Redis is away: nobody could take anything, which is not the consumer's fault.
        log.debug({ err }, 'the queue could not be asked');
        idleSince = undefined;
      })
      .finally(() => {
        looking = false;
      });
  }, stallMs / LOOKS);

  return { isStalled: () => times > 0, close: () => clearInterval(timer) };
}

/** Whether a queue holds jobs and lets them be taken: it is neither paused nor at its rate limit. Throws past a deadline. */
export async function holdsWork(queue: Queue, rateMax?: number): Promise<boolean> {
  const [counts, paused, limitedMs] = await withDeadline(
    Promise.all([queue.getJobCounts('waiting', 'prioritized'), queue.isPaused(), queue.getRateLimitTtl(rateMax)]),
    2_000,
  );
  const jobs = (counts.waiting ?? 0) + (counts.prioritized ?? 0);
  return jobs > 0 && !paused && limitedMs <= 0;
}
