import { type JobsOptions, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from '../log.ts';
import { JOBS } from './jobs.ts';

export interface QueueConnection {
  redisUrl: string;
  /** Separates installations that share a Redis. */
  prefix: string;
}

export interface Queues {
  renders: Queue;
  webhooks: Queue;
  /** Whether Redis answers within so many milliseconds. */
  ping(timeoutMs: number): Promise<boolean>;
  /** Lets go of Redis; never hangs, also where Redis is away. */
  close(): Promise<void>;
}

/**
 * How many finished jobs stay visible to ops. The counts bound Redis' memory: with `noeviction` a full Redis stops
 * everything, workers too.
 */
const KEEP = { removeOnComplete: { count: 1000 }, removeOnFail: { count: 1000 } };
/** A delivery that was applied is history in Postgres; keeping its job would tell nothing more, and cost as much as to add it. */
const KEEP_FAILED = { removeOnComplete: true, removeOnFail: { count: 1000 } };

/** The producers' side of the queues. Opening never waits for Redis. */
export function openQueues({ redisUrl, prefix }: QueueConnection, log: Logger): Queues {
  const connection = new Redis(redisUrl, {
    // A producer may not wait for a lost Redis: the command fails, the sweep makes up for it.
    maxRetriesPerRequest: 1,
    connectTimeout: 2_000,
    // A connection that has died without a word is replaced; TCP itself may need a quarter of an hour to notice.
    socketTimeout: 5_000,
    retryStrategy: (times) => Math.min(1_000, 100 * times),
  });
  connection.on('error', (err) => log.debug({ err }, 'redis connection'));
  const open = (name: string, keep: Pick<JobsOptions, 'removeOnComplete' | 'removeOnFail'>) => {
    const queue = new Queue(name, { connection, prefix, defaultJobOptions: { attempts: 1, ...keep } });
    queue.on('error', (err) => log.debug({ err, queue: name }, 'queue'));
    return queue;
  };
  const renders = open(JOBS.render.queue, KEEP);
  const webhooks = open(JOBS.webhook.queue, KEEP_FAILED);
  return {
    renders,
    webhooks,
    ping: (timeoutMs) =>
      withDeadline(connection.ping(), timeoutMs).then(
        () => true,
        () => false,
      ),
    close: async () => {
      // BullMQ's close() waits for ever where Redis is unreachable; the connection is ours, and dropping it is enough.
      await withDeadline(Promise.all([renders.close(), webhooks.close()]), 1_000).catch(() => {});
      connection.disconnect();
    },
  };
}

/** The promise, or an error after `timeoutMs`. Late failures of the promise are swallowed: nobody waits for them. */
export async function withDeadline<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Redis did not answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {});
  }
}
