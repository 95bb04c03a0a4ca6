import { setTimeout as delay } from 'node:timers/promises';
import type { Lease } from '../../lib/db/move.ts';
import { isConflict, isDatabaseAway } from '../../lib/db/outage.ts';
import { heartbeat } from '../../lib/db/renders.ts';
import type { WorkerDeps } from './deps.ts';

/** Why the work on a claimed render was stopped before its end. */
export type StopReason = 'shutdown' | 'lock-lost' | 'lease-lost';

export interface HeldLease extends Lease {
  /** Aborted with a `StopReason` when the work must stop. */
  signal: AbortSignal;
  /** Noted with the next heartbeat. */
  progress: { stage: string; percent: number } | undefined;
  stop(reason: StopReason): void;
  /** Ends the heartbeats. One still under way can do no harm: it only carries this claim's own token. */
  release(): void;
  /**
   * Makes a write of this claim, again and again while Postgres is away, or gave it up for another, and the lease may still hold: what took minutes
   * to bake should not be lost to a restart that takes seconds.
   */
  write<T>(work: () => Promise<T>): Promise<T>;
}

const RETRY_MS = 250;

const TICK_MS = 1_000;

/** With the tick, five seconds: the longest that a bake goes on after its lease was taken away, by a cancel or otherwise. */
const LONGEST_BEAT_MS = 4_000;

/**
 * Keeps a claim alive with a heartbeat every third of the lease, at most five seconds apart, and sooner where there is
 * progress to note. A refused heartbeat ends the work at once. Where Postgres does not answer, the work goes on until
 * the lease must be taken for lost: then another may have it.
 */
export function holdLease(
  { database, config, log }: Pick<WorkerDeps, 'database' | 'config' | 'log'>,
  lease: Lease,
): HeldLease {
  const controller = new AbortController();
  const leaseMs = config.RENDER_LEASE_MS;
  const beatMs = Math.min(leaseMs / 3, LONGEST_BEAT_MS);
  let lastKept = performance.now();
  let lastNoted: string | undefined;
  let beating = false;

  const mayHold = () => performance.now() - lastKept < leaseMs;
  const beat = async () => {
    const started = performance.now();
    const note = held.progress && `${held.progress.stage} ${Math.round(held.progress.percent)}`;
    if (started - lastKept < beatMs && note === lastNoted) return;
    try {
      if (!(await heartbeat(database.db, lease, leaseMs, held.progress))) return held.stop('lease-lost');
      lastKept = started;
      lastNoted = note;
    } catch (err) {
      log.warn({ err, renderId: lease.id }, 'heartbeat failed');
    }
  };
  const timer = setInterval(
    () => {
      if (!mayHold()) held.stop('lease-lost');
      // Each beat is bounded by the driver; while one waits, another would only wait behind it.
      if (beating) return;
      beating = true;
      void beat().finally(() => {
        beating = false;
      });
    },
    Math.min(beatMs, TICK_MS),
  );

  const held: HeldLease = {
    ...lease,
    signal: controller.signal,
    progress: undefined,
    stop: (reason) => controller.abort(reason),
    release: () => clearInterval(timer),
    write: async (work) => {
      for (;;) {
        try {
          return await work();
        } catch (error) {
          const stopped = controller.signal.reason === 'shutdown' || controller.signal.reason === 'lease-lost';
          const passes = isDatabaseAway(error) || isConflict(error);
          if (!passes || stopped || !mayHold()) throw error;
          await delay(RETRY_MS);
        }
      }
    },
  };
  return held;
}
