import { withLock } from '../../../lib/db/lock.ts';
import type { WorkerDeps } from '../deps.ts';

/** A piece of housekeeping: bounded, safe to repeat, and run by one process at a time. */
export interface Duty {
  name: string;
  /** Runs between two of which so many times `SWEEP_MS` pass. */
  every: number;
  /** Answers how many rows it touched. */
  run(deps: WorkerDeps): Promise<number>;
}

/**
 * Runs the duties on timers of this process: never on schedulers of the queue, which vanish with Redis. The first
 * runs come at once, so that a restarted worker picks up what was left. `stop` waits for what is under way.
 */
export function startDuties(deps: WorkerDeps, duties: readonly Duty[]): { stop(): Promise<void> } {
  const { config, database, log, metrics } = deps;
  let stopped = false;
  const wakers = new Set<() => void>();

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        wakers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      wakers.add(wake);
    });

  const loop = async (duty: Duty) => {
    while (!stopped) {
      try {
        const touched = await withLock(database, `duty:${duty.name}`, () => duty.run(deps));
        if (touched !== null) {
          metrics.dutyRows.inc({ duty: duty.name }, touched);
          metrics.dutyLastRun.setToCurrentTime({ duty: duty.name });
          if (touched > 0) log.info({ duty: duty.name, touched }, 'maintenance');
        }
      } catch (err) {
        metrics.dutyFailures.inc({ duty: duty.name });
        log.warn({ err, duty: duty.name }, 'maintenance failed');
      }
      if (!stopped) await pause(config.SWEEP_MS * duty.every);
    }
  };

  const loops = duties.map(loop);
  return {
    stop: async () => {
      stopped = true;
      for (const wake of [...wakers]) wake();
      await Promise.all(loops);
    },
  };
}
