import type { Queue } from 'bullmq';
import { type Consumer, type ConsumerOptions, openConsumer } from './consumer.ts';
import type { JobKind } from './jobs.ts';
import { holdsWork, watchConsumption } from './watchdog.ts';

export type { Handler, StopCause } from './consumer.ts';

export interface RunJobsOptions<K extends JobKind> extends ConsumerOptions<K> {
  /** Has a consumer that has stopped without saying so noticed and replaced. */
  watch?: {
    /** The producers' side of the same queue: it is asked over another connection than the consumer's. */
    queue: Queue;
    /** How long nothing may be taken, though there is something to take. */
    stallMs: number;
    /** Told of a stall; where replacing the consumer has not helped, only a new process can. */
    onStalled: (then: 'replaced' | 'given-up') => void;
    /** Told when jobs are taken again, or none are left. */
    onRecovered: () => void;
  };
}

export interface JobRunner {
  /** False while there are jobs that this process should take and does not. */
  isConsuming(): boolean;
  /**
   * Takes no more jobs, tells the running ones to stop with cause `shutdown` and waits for them, at most `deadlineMs`;
   * also where Redis is unreachable, where BullMQ's own close() would wait for ever.
   */
  close(deadlineMs: number): Promise<void>;
}

/** So often in a row a consumer is replaced. */
const REPLACEMENTS = 3;

/**
 * Consumes one kind of job. A handler answers how its job ends; it throws only where even that could not be decided,
 * and then nothing is lost either: rows are freed by their lease, webhooks by the replay sweep.
 *
 * The `signal` a handler gets is aborted with a `StopCause` as its reason. A lock counts as lost only where somebody else
 * has the job.
 *
 * A consumer that is found to have stopped is replaced, connection and all; what it has under way goes on and is, for as
 * long as that takes, on top of `concurrency`.
 */
export function runJobs<K extends JobKind>(options: RunJobsOptions<K>): JobRunner {
  const { kind, watch: watching, log } = options;
  let current = openConsumer(options);
  let former: Consumer[] = [];
  let takenByFormer = 0;
  const replace = () => {
    current.abandon();
    takenByFormer += current.taken();
    former = [...former, current].filter((consumer) => consumer.running() > 0);
    current = openConsumer(options);
  };

  const watch =
    watching &&
    watchConsumption({
      stallMs: watching.stallMs,
      taken: () => takenByFormer + current.taken(),
      hasFreeSlot: () => current.running() < options.concurrency,
      hasWork: () => holdsWork(watching.queue, options.limiter?.max),
      onStalled: (times) => {
        const then = times <= REPLACEMENTS ? 'replaced' : 'given-up';
        log.error({ kind, times, then }, 'jobs are waiting and none is taken');
        if (then === 'replaced') replace();
        watching.onStalled(then);
      },
      onRecovered: () => {
        log.info({ kind }, 'jobs are taken again, or none are left');
        watching.onRecovered();
      },
      log,
    });

  return {
    isConsuming: () => !watch?.isStalled(),
    close: async (deadlineMs) => {
      watch?.close();
      await Promise.all([current, ...former].map((consumer) => consumer.close(deadlineMs)));
    },
  };
}
