import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Logger } from '../log.ts';
import { announcedKey, LIMITER_SCRIPTS } from './limiter-scripts.ts';

export interface LimiterOptions {
  redisUrl: string;
  /** Separates installations that share a Redis. */
  prefix: string;
  /** How long a permit outlives its holder; it is renewed every third of that. */
  permitMs: number;
  /** How long an announcement holds without another one. */
  announcedMs: number;
  /** Replaces the sum of what is announced. */
  capacity?: number | undefined;
  /** How many permits this process may have while Redis does not answer. */
  localCap: number;
  /** How long Redis may take for an answer. Default 1 000. */
  deadlineMs?: number;
  log: Logger;
}

/** The right to have one bake under way at one target. */
export interface Permit {
  readonly target: string;
  /**
   * Gives it back, once; never throws and waits for nobody. With `keptMs` the slot counts as taken for so long: what was
   * announced has turned out not to be there.
   */
  release(keptMs?: number): void;
}

export type Acquired =
  | { kind: 'granted'; permit: Permit }
  /** Every slot is taken, or left to those who have waited longer. */
  | { kind: 'full' }
  /** None of the targets has announced a slot. */
  | { kind: 'unannounced' };

export interface Limiter {
  /**
   * Takes a permit for the one of `targets` with the most free slots. Whoever asks for the first time while others wait
   * is told `full`, so that these come before it. Never throws, and answers within its deadline.
   */
  acquire(targets: readonly string[]): Promise<Acquired>;
  /** Makes known what an instance behind a target can take; 0 while it drains. Never throws. */
  announce(target: string, instance: string, slots: number): Promise<void>;
  /** Takes an announcement back: nobody is there any more. Never throws. */
  withdraw(target: string, instance: string): Promise<void>;
  /** Permits that this process holds. */
  held(): number;
  /** Slots of the whole installation as last heard; 0 while nothing is known. */
  capacity(): number;
  /** Whether Redis did not answer when last asked, so that the local cap rules. */
  isLocal(): boolean;
  close(): void;
}

/** Whoever waits asks again within a third of it; who has given up is not waited for any longer. */
const WAITING_MS = 1_000;

/**
 * Bounds the bakes of all workers together by what the media services can take. Holders are leases in a sorted set,
 * scored with their expiry by the clock of Redis: the permit of a dead worker frees itself. A permit that Redis has
 * forgotten is added again by its next renewal, as are those taken while Redis was away.
 */
export function openLimiter(options: LimiterOptions): Limiter {
  const { permitMs, announcedMs, localCap, log } = options;
  const { prefix } = options;
  const keys = [`${prefix}:media:permits`, announcedKey(prefix), `${prefix}:media:waiting`] as const;
  const asker = randomUUID();
  const redis = new Redis(options.redisUrl, {
    maxRetriesPerRequest: 1,
    connectTimeout: 2_000,
    commandTimeout: options.deadlineMs ?? 1_000,
    // A connection that has died without a word is replaced; TCP itself may need a quarter of an hour to notice.
    socketTimeout: 5_000,
    retryStrategy: (times) => Math.min(1_000, 100 * times),
    scripts: LIMITER_SCRIPTS,
  });
  redis.on('error', (err) => log.debug({ err }, 'redis connection'));

  /** By member, which is the permit's id and its target. */
  const held = new Map<string, string>();
  let capacity = 0;
  let local = false;
  let renewing: NodeJS.Timeout | undefined;

  const heard = (isAway: boolean, err?: unknown) => {
    if (isAway !== local) {
      if (isAway) log.warn({ err, localCap }, 'the limiter cannot reach Redis; the local cap rules');
      else log.info({ held: held.size }, 'the limiter has Redis back');
    }
    local = isAway;
  };
  const renew = async () => {
    if (held.size === 0) return;
    try {
      await redis.renewPermits(keys[0], permitMs, ...held.keys());
      heard(false);
    } catch (err) {
      heard(true, err);
    }
  };
  // Others count by what Redis knows, and it may have been away for longer than a permit lasts.
  redis.on('ready', () => void renew());

  const hold = (member: string, target: string): Acquired => {
    held.set(member, target);
    renewing ??= setInterval(() => void renew(), permitMs / 3);
    const release = (keptMs = 0) => {
      if (!held.delete(member)) return;
      if (held.size === 0) {
        clearInterval(renewing);
        renewing = undefined;
      }
      // Where this is not heard, the permit ends by itself.
      const given = keptMs > 0 ? redis.outlivePermit(keys[0], keptMs, member) : redis.zrem(keys[0], member);
      given.catch((err) => log.debug({ err }, 'permit not released'));
    };
    return { kind: 'granted', permit: { target, release } };
  };

  const acquireLocally = (targets: readonly string[]): Acquired => {
    const load = (target: string) => [...held.values()].filter((of) => of === target).length;
    const [target] = [...targets].sort((a, b) => load(a) - load(b));
    if (target === undefined) return { kind: 'unannounced' };
    return held.size < localCap ? hold(memberOf(randomUUID(), target), target) : { kind: 'full' };
  };

  return {
    acquire: async (targets) => {
      const id = randomUUID();
      try {
        const reply = (await redis.acquirePermit(
          ...[...keys, permitMs, options.capacity ?? -1, id, asker, WAITING_MS],
          ...[targets.length, ...targets, ...held.keys()],
        )) as [kind: Acquired['kind'], target: string, capacity: number];
        heard(false);
        const [kind, target] = reply;
        capacity = reply[2];
        return kind === 'granted' ? hold(memberOf(id, target), target) : { kind };
      } catch (err) {
        heard(true, err);
        // Redis may hear of it yet, and would keep a permit that nobody has.
        if (targets.length > 0) {
          redis.zrem(keys[0], ...targets.map((target) => memberOf(id, target))).catch(() => undefined);
        }
        return acquireLocally(targets);
      }
    },
    announce: async (target, instance, slots) => {
      try {
        const total = await redis.announceSlots(keys[1], `${target} ${instance}`, slots, announcedMs);
        heard(false);
        capacity = options.capacity ?? total;
      } catch (err) {
        heard(true, err);
      }
    },
    withdraw: async (target, instance) => {
      await redis.hdel(keys[1], `${target} ${instance}`).catch((err) => log.debug({ err, target }, 'not withdrawn'));
    },
    held: () => held.size,
    capacity: () => capacity,
    isLocal: () => local,
    close: () => {
      clearInterval(renewing);
      redis.disconnect();
    },
  };
}

/** The scripts cut it apart again: an id of 36 characters, a space, the target. */
const memberOf = (id: string, target: string) => `${id} ${target}`;
