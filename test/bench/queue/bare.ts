import { randomUUID } from 'node:crypto';
import { Queue, Worker } from 'bullmq';

const BATCH = 1_000;

/** Jobs per second of a BullMQ worker that does nothing, from the first `addBulk` to the last one done. */
export async function runBare(redisUrl: string, options: { jobs: number; concurrency: number }): Promise<number> {
  const { hostname: host, port, password } = new URL(redisUrl);
  const connection = { host, port: Number(port), password, maxRetriesPerRequest: null };
  const prefix = `bare-${randomUUID()}`;
  const kept = { removeOnComplete: { count: 1000 }, removeOnFail: { count: 1000 } };
  const queue = new Queue('bare', { connection, prefix, defaultJobOptions: kept });
  let left = options.jobs;
  const worker = new Worker('bare', async () => {}, { connection, prefix, concurrency: options.concurrency });
  const allDone = new Promise<void>((resolve) => {
    worker.on('completed', () => {
      left -= 1;
      if (left === 0) resolve();
    });
  });
  try {
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    const started = performance.now();
    for (let added = 0; added < options.jobs; added += BATCH) {
      const size = Math.min(BATCH, options.jobs - added);
      await queue.addBulk(Array.from({ length: size }, () => ({ name: 'noop', data: { id: randomUUID() } })));
    }
    await allDone;
    return options.jobs / ((performance.now() - started) / 1000);
  } finally {
    await worker.close();
    await queue.obliterate({ force: true });
    await queue.close();
  }
}
