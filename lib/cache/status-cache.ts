import { EventEmitter } from 'node:events';
import { Redis } from 'ioredis';
import type { Logger } from '../log.ts';
import { createMemory } from '../memory.ts';
import { announcedKey, COUNT_SLOTS } from './limiter-scripts.ts';
import { STATUS_SCRIPTS } from './status-scripts.ts';

export interface StatusCacheOptions {
  redisUrl: string;
  /** Separates installations that share a Redis. */
  prefix: string;
  /** How long Redis may take for an answer. Default 200. */
  deadlineMs?: number;
  /** Connect when first asked, and have that wait for the connection, within the deadline: for a process that lives shortly. */
  lazy?: boolean;
  log: Logger;
}

/** Tells everybody who shows a programme that it is not what it was. */
export interface StatusBell {
  /** After the commit. Best effort, bounded in time, never throws: what is not heard ends with the time of the entries. */
  ring(programIds: readonly string[]): Promise<void>;
  close(): void;
}

/** `last` is what was told a while ago, by whichever process, and may not be true any more; null where that is not known. */
export type ComputeStatus = (last: string | null) => Promise<string | null>;

export interface StatusCache extends StatusBell {
  /**
   * The status of a programme as JSON text: remembered here, or by any other process, or computed; whoever asks meanwhile
   * shares the computing. Null is not remembered. Throws what `compute` throws and nothing else.
   */
  read(programId: string, compute: ComputeStatus): Promise<string | null>;
  /** What this process remembers, at once, and computes anew in time; undefined where it would have to ask. */
  peek(programId: string, compute: ComputeStatus): string | undefined;
  /** What the media services can take together, as the workers announce it; null while that cannot be known. */
  slots(): Promise<number | null>;
  /** Calls back at each ring, with the programme's id; before whoever listens for this programme alone. */
  onAnyRing(listener: (programId: string) => void): void;
  /** Calls back at each ring for this programme, in whichever process; answers how to stop that. */
  onRing(programId: string, listener: () => void): () => void;
}

/** The net under the bell, in Redis and in the process. Here it is short: an ear may be lost without anybody noticing. */
const REMEMBERED_MS = 5_000;
const REMEMBERED_HERE_MS = 500;
/** What was told last outlives the pauses between looks of whoever polls. */
const LAST_KEPT_MS = 60_000;
/** Longer than any computing that began before the change. */
const CHANGES_KEPT_MS = 10 * 60_000;
/** After Redis has not answered, nobody waits for it for so long. */
const AWAY_MS = 1_000;
/** Programmes that are asked for at once, in one process; beyond that what came first goes. */
const MAX_HERE = 10_000;
/** The event of every ring; no programme is called so. */
const ANY = 'any';
/** Programmes rung for in one exchange. */
const BATCH = 500;

const connect = ({ redisUrl, deadlineMs, lazy = false }: StatusCacheOptions) =>
  new Redis(redisUrl, {
    maxRetriesPerRequest: 1,
    connectTimeout: 2_000,
    commandTimeout: deadlineMs ?? 200,
    // A connection that has died without a word is replaced; TCP itself may need a quarter of an hour to notice.
    socketTimeout: 5_000,
    lazyConnect: lazy,
    enableOfflineQueue: lazy,
    retryStrategy: (times) => Math.min(1_000, 100 * times),
    scripts: { ...STATUS_SCRIPTS, ...COUNT_SLOTS },
  });

/** For processes that change programmes and show none. */
export function openStatusBell(options: StatusCacheOptions): StatusBell {
  const redis = connect(options);
  redis.on('error', (err) => options.log.debug({ err }, 'redis connection'));
  return { ring: ringer(redis, options), close: () => redis.disconnect() };
}

function ringer(redis: Redis, { prefix, log }: StatusCacheOptions): StatusBell['ring'] {
  const { value, changes, channel } = namesWith(prefix);
  return async (programIds) => {
    try {
      for (let at = 0; at < programIds.length; at += BATCH) {
        const some = programIds.slice(at, at + BATCH);
        const keys = some.flatMap((id) => [value(id), changes(id)]);
        await redis.changeStatuses(keys.length, ...keys, channel, CHANGES_KEPT_MS, ...some);
      }
    } catch (err) {
      log.debug({ err, programs: programIds.length }, 'nobody was told of a change');
    }
  };
}

const namesWith = (prefix: string) => ({
  value: (programId: string) => `${prefix}:status:${programId}`,
  changes: (programId: string) => `${prefix}:status-changes:${programId}`,
  last: (programId: string) => `${prefix}:status-last:${programId}`,
  channel: `${prefix}:status-bell`,
});

/**
 * Remembers what programmes look like, in Redis for all edges and for half a second in this process. Without Redis it is
 * this process and `compute` alone, and as right.
 */
export function openStatusCache(options: StatusCacheOptions): StatusCache {
  const { prefix, log } = options;
  const { value, changes, last, channel } = namesWith(prefix);
  const redis = connect(options);
  // A connection that listens cannot ask.
  const ear = redis.duplicate({ commandTimeout: undefined, socketTimeout: undefined, autoResubscribe: true });
  const here = createMemory<string | null>({ ms: REMEMBERED_HERE_MS, max: MAX_HERE, keep: (text) => text !== null });
  const bells = new EventEmitter().setMaxListeners(0);
  let awayUntil = 0;

  for (const connection of [redis, ear]) connection.on('error', (err) => log.debug({ err }, 'redis connection'));
  // What was rung while nobody listened is not known.
  ear.on('ready', () => {
    here.clear();
    ear.subscribe(channel).catch((err) => log.debug({ err }, 'not subscribed'));
  });
  ear.on('message', (_, programId: string) => {
    heard(programId);
  });

  const heard = (programId: string) => {
    here.forget(programId);
    bells.emit(ANY, programId);
    bells.emit(programId);
  };

  const within = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    if (redis.status !== 'ready' || performance.now() < awayUntil) return undefined;
    try {
      return await work();
    } catch (err) {
      awayUntil = performance.now() + AWAY_MS;
      log.debug({ err }, 'status not read from Redis');
      return undefined;
    }
  };

  const readShared = async (programId: string, compute: ComputeStatus): Promise<string | null> => {
    const keys = [value(programId), changes(programId), last(programId)] as const;
    const known = await within(() => redis.readStatus(...keys));
    if (typeof known?.[0] === 'string') return known[0];
    const text = await compute(known?.[2] ?? null);
    if (known && text !== null)
      void within(() => redis.storeStatus(...keys, known[1], text, REMEMBERED_MS, LAST_KEPT_MS));
    return text;
  };

  const ring = ringer(redis, options);
  return {
    read: (programId, compute) => here.get(programId, () => readShared(programId, compute)),
    peek: (programId, compute) => here.peek(programId, () => readShared(programId, compute)) ?? undefined,
    ring: async (programIds) => {
      await ring(programIds);
      // Here at once, and also where Redis is away.
      for (const programId of programIds) heard(programId);
    },
    slots: async () => (await within(() => redis.countSlots(announcedKey(prefix)))) ?? null,
    onAnyRing: (listener) => {
      bells.on(ANY, listener);
    },
    onRing: (programId, listener) => {
      bells.on(programId, listener);
      return () => {
        bells.off(programId, listener);
      };
    },
    close: () => {
      redis.disconnect();
      ear.disconnect();
    },
  };
}
