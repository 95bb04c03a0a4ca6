import { DelayedError, type Job, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from '../log.ts';
import { JOBS, type JobKind, type JobPayload, later, type Outcome } from './jobs.ts';
import { type QueueConnection, withDeadline } from './queues.ts';

/** Why a running job is told to stop; the cause that the history will name. */
export type StopCause = 'shutdown' | 'lock-lost';

export type Handler<K extends JobKind> = (payload: JobPayload<K>, signal: AbortSignal) => Promise<Outcome>;

export interface RunJobsOptions<K extends JobKind> extends QueueConnection {
  kind: K;
  concurrency: number;
  /**
   * How long BullMQ takes a job for alive without a renewal, and how often it looks; the job of a dead worker is out of
   * the way after at most twice that. Default 30 000, BullMQ's own.
   */
  lockMs?: number;
  /** At most so many job starts per duration, over all workers of the queue. */
  limiter?: { max: number; duration: number };
  handler: Handler<K>;
  log: Logger;
}

export interface JobRunner {
  /**
   * Takes no more jobs, tells the running ones to stop with cause `shutdown` and waits for them, at most `deadlineMs`;
   * also where Redis is unreachable, where BullMQ's own close() would wait for ever.
   */
  close(deadlineMs: number): Promise<void>;
}

/**
 * Consumes one kind of job. A handler answers how its job ends; it throws only where even that could not be decided,
 * and then nothing is lost either: rows are freed by their lease, webhooks by the replay sweep.
 *
 * The `signal` a handler gets is aborted with a `StopCause` as its reason.
 */
export function runJobs<K extends JobKind>(options: RunJobsOptions<K>): JobRunner {
  const { kind, handler, log } = options;
  const running = new Map<string, AbortController>();
  let closing = false;
  const connection = new Redis(options.redisUrl, {
    // Demanded by BullMQ for its blocking reads.
    maxRetriesPerRequest: null,
    connectTimeout: 2_000,
    retryStrategy: (times) => Math.min(1_000, 100 * times),
  });
  connection.on('error', (err) => log.debug({ err }, 'redis connection'));

  const process = async (job: Job, token?: string) => {
    const payload = JOBS[kind].payload.parse(job.data) as JobPayload<K>;
    const id = job.id ?? '';
    const controller = new AbortController();
    running.set(id, controller);
    try {
      // BullMQ may hand out what it had fetched already when it was told to close.
      const outcome = closing ? later('shutdown', 0) : await handler(payload, controller.signal);
      if (outcome.kind === 'done') return outcome.note;
      await job.moveToDelayed(Date.now() + outcome.delayMs, token);
      throw new DelayedError(outcome.note);
    } finally {
      running.delete(id);
    }
  };

  const worker = new Worker(JOBS[kind].queue, process, {
    connection,
    prefix: options.prefix,
    concurrency: options.concurrency,
    lockDuration: options.lockMs ?? 30_000,
    stalledInterval: options.lockMs ?? 30_000,
    ...(options.limiter && { limiter: options.limiter }),
    // How often BullMQ thinks a job has stalled decides nothing here: a row's lease does.
    maxStalledCount: 1_000,
  });
  worker.on('error', (err) => log.debug({ err, kind }, 'worker'));
  worker.on('failed', (job, err) => log.error({ err, kind, jobId: job?.id }, 'job failed unexpectedly'));
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) running.get(id)?.abort('lock-lost' satisfies StopCause);
  });

  return {
    close: async (deadlineMs) => {
      closing = true;
      const closed = worker.close();
      for (const controller of running.values()) controller.abort('shutdown' satisfies StopCause);
      await withDeadline(closed, deadlineMs).catch((err) => log.warn({ err, kind }, 'worker did not close in time'));
      connection.disconnect();
    },
  };
}
