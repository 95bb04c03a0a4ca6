import type { WorkerConfig } from '../../../lib/config/worker.ts';
import { startDutyRun } from '../../../lib/db/duty-runs.ts';
import { withLock } from '../../../lib/db/lock.ts';
import type { WorkerDeps } from '../deps.ts';

/** A piece of housekeeping: bounded, safe to repeat, and run by one process at a time. */
export type Duty = {
  name: string;
  /** Answers how many rows it touched. The signal fires when the process stops. */
  run(deps: WorkerDeps, signal: AbortSignal): Promise<number>;
} & (
  | {
      /** Runs between two of which so many times `SWEEP_MS` pass; the first comes at once. */
      every: number;
    }
  | {
      /** Milliseconds between two runs over all workers, and before the first: for what is too much for every start. */
      everyMs(config: WorkerConfig): number;
    }
);

/** How often a worker looks whether a rare duty is due. */
const LOOK_MS = 60_000;

export interface Duties {
  /** Has a duty run now instead of when its time has come. */
  wake(duty: Duty): void;
  /** Waits for what is under way. */
  stop(): Promise<void>;
}

/**
 * Runs the duties on timers of this process: never on schedulers of the queue, which vanish with Redis. Sweeps run
 * at once, so that a restarted worker picks up what was left.
 */
export function startDuties(deps: WorkerDeps, duties: readonly Duty[]): Duties {
  const { config, database, log, metrics } = deps;
  const stopping = new AbortController();
  const wakers = new Map<Duty, () => void>();
  /** Woken while they were at work: they do not pause before the next run. */
  const again = new Set<Duty>();

  const pause = (duty: Duty, ms: number) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        wakers.delete(duty);
        resolve();
      };
      const timer = setTimeout(wake, again.delete(duty) ? 0 : ms);
      wakers.set(duty, wake);
    });

  const loop = async (duty: Duty) => {
    const periodMs = 'every' in duty ? config.SWEEP_MS * duty.every : duty.everyMs(config);
    const pauseMs = 'every' in duty ? periodMs : Math.min(periodMs, LOOK_MS);
    const isDue = async () => 'every' in duty || startDutyRun(database.db, duty.name, periodMs);
    while (!stopping.signal.aborted) {
      try {
        const touched = await withLock(database, `duty:${duty.name}`, async () =>
          (await isDue()) ? duty.run(deps, stopping.signal) : null,
        );
        if (touched !== null) {
          metrics.dutyRows.inc({ duty: duty.name }, touched);
          metrics.dutyLastRun.setToCurrentTime({ duty: duty.name });
          if (touched > 0) log.info({ duty: duty.name, touched }, 'maintenance');
        }
      } catch (err) {
        metrics.dutyFailures.inc({ duty: duty.name });
        log.warn({ err, duty: duty.name }, 'maintenance failed');
      }
      if (!stopping.signal.aborted) await pause(duty, pauseMs);
    }
  };

  const loops = duties.map(loop);
  return {
    wake: (duty) => {
      const wake = wakers.get(duty);
      if (wake) wake();
      else again.add(duty);
    },
    stop: async () => {
      stopping.abort();
      for (const wake of [...wakers.values()]) wake();
      await Promise.all(loops);
    },
  };
}
