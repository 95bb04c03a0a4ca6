import { DelayedError, ErrorCode, Job, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from '../log.ts';
import { JOBS, type JobKind, type JobPayload, later, type Outcome } from './jobs.ts';
import { type QueueConnection, withDeadline } from './queues.ts';

/** Why a running job is told to stop; the cause that the history will name. */
export type StopCause = 'shutdown' | 'lock-lost';

export type Handler<K extends JobKind> = (payload: JobPayload<K>, signal: AbortSignal) => Promise<Outcome>;

export interface ConsumerOptions<K extends JobKind> extends QueueConnection {
  kind: K;
  concurrency: number;
  /**
   * How long BullMQ takes a job for alive without a renewal, and how often it looks for those that are not. Default
   * 30 000, BullMQ's own.
   */
  lockMs?: number;
  /** At most so many job starts per duration, over all workers of the queue. */
  limiter?: { max: number; duration: number };
  handler: Handler<K>;
  /** Told each time there is no job left to take. */
  onDrained?: () => void;
  log: Logger;
}

/** One BullMQ worker with a connection of its own. */
export interface Consumer {
  /** Jobs taken so far. */
  taken(): number;
  /** Jobs whose handler is at work. */
  running(): number;
  /**
   * Lets go of Redis at once and takes nothing more, while what is running goes on. The queue will take those jobs for
   * stalled and hand them out again, to find that their rows are not claimable.
   */
  abandon(): void;
  /** Takes nothing more, tells what is running to stop with cause `shutdown` and waits for it, at most so long. */
  close(deadlineMs: number): Promise<void>;
}

const JOB_LOOKUP_MS = 2_000;

interface Running {
  jobId: string;
  /** What our lock of the job holds. */
  token: string | undefined;
  controller: AbortController;
  ended: Promise<unknown>;
  /** Whether its lock was found to be lost, and nobody to have it instead. */
  goesOn: boolean;
}

/** What BullMQ says of a job that is not ours any more: forgotten, unlocked, given to another, moved on. */
const NOT_OURS: ReadonlySet<unknown> = new Set([
  ErrorCode.JobNotExist,
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
]);
const isNotOurs = (err: unknown) => err instanceof Error && 'code' in err && NOT_OURS.has(err.code);

export function openConsumer<K extends JobKind>(options: ConsumerOptions<K>): Consumer {
  const { kind, handler, log } = options;
  // Not by their ids: Redis may forget a job that waits here for a permit, and the mirror then adds it again.
  const running = new Set<Running>();
  let taken = 0;
  let leaving = false;
  let abandoned = false;
  const connection = new Redis(options.redisUrl, {
    // For CLIENT LIST.
    connectionName: `${options.prefix}:${kind}:consumer`,
    // Demanded by BullMQ for its blocking reads.
    maxRetriesPerRequest: null,
    connectTimeout: 2_000,
    retryStrategy: (times) => Math.min(1_000, 100 * times),
  });
  connection.on('error', (err) => log.debug({ err }, 'redis connection'));

  const handle = async (job: Job, token: string | undefined): Promise<Outcome> => {
    const payload = JOBS[kind].payload.parse(job.data) as JobPayload<K>;
    // BullMQ may hand out what it had fetched already when it was told to close.
    if (leaving) return later('shutdown', 0);
    const controller = new AbortController();
    const ended = handler(payload, controller.signal);
    const each: Running = { jobId: job.id ?? '', token, controller, ended, goesOn: false };
    running.add(each);
    try {
      return await ended;
    } finally {
      running.delete(each);
    }
  };

  const process = async (job: Job, token?: string) => {
    taken += 1;
    const outcome = await handle(job, token);
    if (outcome.kind === 'done' || abandoned) return outcome.note;
    try {
      await job.moveToDelayed(Date.now() + outcome.delayMs, token);
    } catch (err) {
      if (!isNotOurs(err)) throw err;
      // What is to run again is pending in Postgres, and the sweep adds a job for it where Redis has none.
      log.debug({ err, kind, jobId: job.id }, 'a job to be delayed was not ours any more');
      return outcome.note;
    }
    throw new DelayedError(outcome.note);
  };

  /**
   * Whether somebody else is at a job of ours. Nobody is where Redis was flushed and does not know it, where it has ended
   * (added again after a flush, taken, and found to be claimed already), or where its lock could only not be renewed, as
   * in a Redis without memory. As long as nobody is, the row's lease decides alone.
   */
  const isAnothers = async (id: string, tokens: ReadonlySet<string | undefined>): Promise<boolean> => {
    const [job, holder] = await Promise.all([Job.fromId(worker, id), connection.get(`${worker.toKey(id)}:lock`)]);
    return job !== undefined && job.finishedOn === undefined && holder !== null && !tokens.has(holder);
  };

  const lockLost = async (id: string) => {
    const lost = [...running].filter(({ jobId }) => jobId === id);
    if (lost.length === 0) return;
    try {
      const tokens = new Set(lost.map(({ token }) => token));
      if (!(await withDeadline(isAnothers(id, tokens), JOB_LOOKUP_MS))) {
        if (lost.some(({ goesOn }) => !goesOn))
          log.warn({ kind, jobId: id }, 'the lock of a running job is lost, but nobody else has the job: it goes on');
        for (const each of lost) each.goesOn = true;
        return;
      }
    } catch (err) {
      // The next renewal will fail and ask again.
      log.debug({ err, kind, jobId: id }, 'a lost lock could not be looked into');
      return;
    }
    for (const { controller } of lost) controller.abort('lock-lost' satisfies StopCause);
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
  // A job that vanished while it ran ends in one of these, too.
  worker.on('error', (err) => log.debug({ err, kind }, 'worker'));
  worker.on('failed', (job, err) => log.error({ err, kind, jobId: job?.id }, 'job failed unexpectedly'));
  worker.on('drained', () => options.onDrained?.());
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) void lockLost(id);
  });

  return {
    taken: () => taken,
    running: () => running.size,
    abandon: () => {
      leaving = true;
      abandoned = true;
      worker.close(true).catch((err) => log.debug({ err, kind }, 'abandoned worker'));
      connection.disconnect();
    },
    close: async (deadlineMs) => {
      leaving = true;
      const closed = abandoned ? Promise.allSettled([...running].map(({ ended }) => ended)) : worker.close();
      for (const { controller } of running) controller.abort('shutdown' satisfies StopCause);
      await withDeadline(Promise.resolve<unknown>(closed), deadlineMs).catch((err) =>
        log.warn({ err, kind }, 'worker did not close in time'),
      );
      connection.disconnect();
    },
  };
}
