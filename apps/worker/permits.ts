import { setTimeout as delay } from 'node:timers/promises';
import type { Limiter, Permit } from '../../lib/cache/limiter.ts';
import { toAppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Fleet } from '../../lib/media/fleet.ts';
import type { WorkerMetrics } from './metrics.ts';

export interface PermitsOptions {
  fleet: Pick<Fleet, 'targets' | 'capacity'>;
  limiter: Limiter;
  /** How often each target is asked what it can take. */
  pollMs: number;
  /** For how long what an instance said of itself counts. */
  announcedMs: number;
  metrics: Pick<WorkerMetrics, 'permitWait' | 'mediaTargets'>;
  log: Logger;
}

export interface Permits {
  /**
   * Resolves when there is a permit; who has waited longest in this process is served first. Null where `signal` ended
   * the waiting.
   */
  acquire(signal: AbortSignal): Promise<Permit | null>;
  /** Looks at media at once: a bake was turned away or broke off, so what is known of it may be out of date. */
  lookAgain(): void;
  /** False while no target answers. */
  hasMedia(): boolean;
  close(): void;
}

/** Between two questions for a permit while all are taken. Who has just given one back asks no sooner than the others. */
const RETRY_MS = 200;
/** Between two looks at media for those who wait. */
const SOONEST_LOOK_MS = 1_000;

/** Up to a half more or less, so that many workers do not ask in step. */
const jittered = (ms: number) => ms * (0.5 + Math.random());

/**
 * Hands out permits for bakes. Media knows no Redis, so the workers look what each target can take and announce it to
 * the limiter: at start, every few seconds, and at once where nothing is announced or media has turned a bake away.
 */
export function openPermits({ fleet, limiter, pollMs, announcedMs, metrics, log }: PermitsOptions): Permits {
  const closing = new AbortController();
  const waiting: ((permit: Permit) => void)[] = [];
  /** At each target that answers: the instances met lately, and whether they take new work. */
  const seen = new Map<string, Map<string, { open: boolean; at: number }>>();
  let looking: Promise<void> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looked = false;
  let serving = false;
  let timer: NodeJS.Timeout | undefined;

  const lookAt = async (target: string) => {
    try {
      const { instance, slots, draining } = await fleet.capacity(target, closing.signal);
      const now = performance.now();
      const met = [...(seen.get(target) ?? [])].filter(([, { at }]) => now - at < announcedMs);
      seen.set(target, new Map(met).set(instance, { open: !draining, at: now }));
      await limiter.announce(target, instance, draining ? 0 : slots);
    } catch (thrown) {
      if (closing.signal.aborted) return;
      const gone = seen.get(target);
      seen.delete(target);
      if (gone || !looked) log.warn({ target, detail: toAppError(thrown).detail }, 'media target does not answer');
      for (const instance of gone?.keys() ?? []) await limiter.withdraw(target, instance);
    }
  };

  const lookAtAll = async () => {
    const had = seen.size;
    await Promise.all(fleet.targets.map(lookAt));
    metrics.mediaTargets.set(seen.size);
    if (seen.size === 0 && (had > 0 || !looked)) log.error('no media: nothing can be baked until a target answers');
    if (seen.size > 0 && had === 0 && looked) log.info({ targets: [...seen.keys()] }, 'media is there');
    looked = true;
  };

  /** One look at a time; whoever asks meanwhile shares it. */
  const look = (): Promise<void> => {
    clearTimeout(timer);
    lookedAt = performance.now();
    looking ??= lookAtAll().finally(() => {
      looking = undefined;
      if (!closing.signal.aborted) timer = setTimeout(() => void look(), jittered(pollMs));
    });
    return looking;
  };
  const lookSoon = async () => {
    if (looking || performance.now() - lookedAt >= Math.min(SOONEST_LOOK_MS, pollMs)) await look();
  };

  const openTargets = () =>
    fleet.targets.filter((target) => [...(seen.get(target)?.values() ?? [])].some(({ open }) => open));

  const hand = (permit: Permit) => {
    const first = waiting.shift();
    if (first) first(permit);
    else permit.release();
  };

  /** One permit, and where there is one, for the others who wait in the same breath: not each in a round trip of its own. */
  const serve = async () => {
    while (waiting.length > 0 && !closing.signal.aborted) {
      const targets = openTargets();
      const acquired = targets.length > 0 ? await limiter.acquire(targets) : undefined;
      if (acquired?.kind === 'granted') {
        hand(acquired.permit);
        const others = await Promise.all(waiting.map(() => limiter.acquire(targets)));
        for (const other of others) if (other.kind === 'granted') hand(other.permit);
        if (others.every(({ kind }) => kind === 'granted')) continue;
      } else if (acquired?.kind !== 'full') await lookSoon();
      await delay(jittered(RETRY_MS), undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const startServing = () => {
    if (serving) return;
    serving = true;
    void serve().finally(() => {
      serving = false;
      if (waiting.length > 0 && !closing.signal.aborted) startServing();
    });
  };

  void look();
  return {
    acquire: (signal) => {
      const waited = metrics.permitWait.startTimer();
      return new Promise((resolve) => {
        if (signal.aborted) return resolve(null);
        const end = (permit: Permit | null) => {
          signal.removeEventListener('abort', leave);
          waited();
          resolve(permit);
        };
        const leave = () => {
          waiting.splice(waiting.indexOf(end), 1);
          end(null);
        };
        signal.addEventListener('abort', leave, { once: true });
        waiting.push(end);
        startServing();
      });
    },
    lookAgain: () => void look(),
    hasMedia: () => seen.size > 0 || !looked,
    close: () => {
      closing.abort();
      clearTimeout(timer);
    },
  };
}
