/** As a shell reports a process that a signal ended: 128 + the signal's number. */
const EXIT_STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Runs `work`, whose signal is aborted when somebody asks this process to end; a second request ends it at once.
 * Resolves when the work is over. A process asked to end leaves with the status of that signal's convention only where
 * the work did not come to its end by itself.
 */
export async function untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const stop = (signal: keyof typeof EXIT_STATUS) => {
    if (controller.signal.aborted) process.exit(EXIT_STATUS[signal]);
    controller.abort(signal);
  };
  const signals = Object.keys(EXIT_STATUS) as (keyof typeof EXIT_STATUS)[];
  for (const signal of signals) process.on(signal, stop);
  try {
    await work(controller.signal);
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}
