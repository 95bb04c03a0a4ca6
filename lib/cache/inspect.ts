import { Redis } from 'ioredis';

export interface RedisFacts {
  version: string;
  /** BullMQ needs `noeviction`: anything else drops locks and jobs to make room. */
  maxmemoryPolicy: string;
}

/** Asks a Redis about itself. Throws where it does not answer within a few seconds. */
export async function inspectRedis(url: string): Promise<RedisFacts> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 3_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The failed command says it too; without a listener ioredis prints to the console.
  redis.on('error', () => {});
  try {
    await redis.connect();
    const info = await redis.info();
    const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? 'unknown';
    return { version: field('redis_version'), maxmemoryPolicy: field('maxmemory_policy') };
  } finally {
    redis.disconnect();
  }
}
