import type { Logger } from './log.ts';

export interface ShutdownStep {
  name: string;
  /** Must give up by itself or be safe to abandon: after `deadlineMs` the next step starts anyway. */
  run: () => Promise<unknown> | unknown;
  deadlineMs: number;
}

/** Runs the steps in order, each at most for its deadline. Never throws; resolves to the names that failed or ran over. */
export async function runShutdown(steps: ShutdownStep[], log: Logger): Promise<string[]> {
  const failed: string[] = [];
  for (const step of steps) {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not finished after ${step.deadlineMs} ms`)), step.deadlineMs);
    });
    try {
      await Promise.race([Promise.resolve().then(step.run), late]);
    } catch (error) {
      failed.push(step.name);
      log.warn({ err: error, step: step.name }, 'shutdown step did not finish');
    } finally {
      clearTimeout(timer);
    }
  }
  return failed;
}

/** A terminal signals the whole group, and whoever started us may pass the same signal on. */
const ECHO_MS = 1_000;

/**
 * Runs the steps on the first SIGTERM or SIGINT, or when the process that started this one is gone, and leaves with
 * status 0, or 1 where a step failed; a second signal leaves at once. Node's default would drop what is under way.
 *
 * The function answered begins the same because of something that only a new process can mend; it leaves with 1.
 */
export function onSignal(steps: ShutdownStep[], log: Logger): (reason: string) => void {
  let leaving = false;
  let signalledAt: number | undefined;
  const stop = (signal: NodeJS.Signals | 'disconnect') => {
    if (signal !== 'disconnect') {
      if (signalledAt !== undefined && performance.now() - signalledAt > ECHO_MS) process.exit(130);
      signalledAt ??= performance.now();
    }
    // The first signal to a process that leaves of its own accord asks for what it is doing already.
    if (leaving) return;
    log.info({ signal }, 'shutting down');
    leave(0);
  };
  const leave = (status: number) => {
    leaving = true;
    void runShutdown(steps, log).then((failed) => process.exit(failed.length > 0 ? 1 : status));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  // Started by `bakehouse up`: the channel closes when that is gone, however it went, and nobody is left to stop us.
  if (process.channel) process.on('disconnect', () => stop('disconnect'));
  return (reason) => {
    if (leaving) return;
    log.fatal({ reason }, 'shutting down to be started anew');
    leave(1);
  };
}
