/** As a shell reports a process that a signal ended: 128 + the signal's number. */
const EXIT_STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** One Ctrl-C comes several times under npm and tsx: from the terminal and passed on by each of them. */
const ECHO_MS = 1_000;

/**
 * Runs `work`, whose signal is aborted when somebody asks this process to end; a second request ends it at once.
 * Resolves when the work is over. A process asked to end leaves with the status of that signal's convention only where
 * the work did not come to its end by itself.
 */
export async function untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  let askedAt = 0;
  const stop = (signal: keyof typeof EXIT_STATUS) => {
    if (!controller.signal.aborted) {
      askedAt = performance.now();
      controller.abort(signal);
    } else if (performance.now() - askedAt > ECHO_MS) {
      process.exit(EXIT_STATUS[signal]);
    }
  };
  const signals = Object.keys(EXIT_STATUS) as (keyof typeof EXIT_STATUS)[];
  for (const signal of signals) process.on(signal, stop);
  try {
    await work(controller.signal);
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}
