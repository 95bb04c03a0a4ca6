import { heartbeat, type Lease } from '../../lib/db/renders.ts';
import type { WorkerDeps } from './deps.ts';

/** Why the work on a claimed render was stopped before its end. */
export type StopReason = 'shutdown' | 'lock-lost' | 'lease-lost';

export interface HeldLease extends Lease {
  /** Aborted with a `StopReason` when the work must stop. */
  signal: AbortSignal;
  /** Noted with the next heartbeat. */
  progress: { stage: string; percent: number } | undefined;
  stop(reason: StopReason): void;
  /** Ends the heartbeats. Resolves once none is under way any more. */
  release(): Promise<void>;
}

/**
 * Keeps a claim alive with a heartbeat every third of the lease. A refused heartbeat ends the work at once. Where
 * Postgres does not answer, the work goes on until the lease must be taken for lost: then another may have it.
 */
export function holdLease(
  { database, config, log }: Pick<WorkerDeps, 'database' | 'config' | 'log'>,
  lease: Lease,
): HeldLease {
  const controller = new AbortController();
  const leaseMs = config.RENDER_LEASE_MS;
  const everyMs = Math.min(leaseMs / 3, 1_000);
  let lastKept = performance.now();
  let lastWritten: string | undefined;
  let beating: Promise<void> = Promise.resolve();

  const beat = async () => {
    const due = performance.now() - lastKept >= leaseMs / 3;
    const note = held.progress && `${held.progress.stage} ${Math.round(held.progress.percent)}`;
    if (!due && note === lastWritten) return;
    const started = performance.now();
    try {
      if (!(await heartbeat(database.db, lease, leaseMs, held.progress))) return held.stop('lease-lost');
      lastKept = started;
      lastWritten = note;
    } catch (err) {
      log.warn({ err, renderId: lease.id }, 'heartbeat failed');
    }
  };
  const timer = setInterval(() => {
    if (performance.now() - lastKept >= leaseMs) held.stop('lease-lost');
    beating = beating.then(beat);
  }, everyMs);

  const held: HeldLease = {
    ...lease,
    signal: controller.signal,
    progress: undefined,
    stop: (reason) => controller.abort(reason),
    release: async () => {
      clearInterval(timer);
      await beating;
    },
  };
  return held;
}
