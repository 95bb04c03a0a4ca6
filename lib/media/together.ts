/**
 * Runs all works at once under a signal of their own. When one fails the others are told to stop, and only when all have
 * ended is the first failure thrown: nothing is left running behind the caller's back.
 */
export async function together<T extends readonly ((signal: AbortSignal) => Promise<unknown>)[]>(
  signal: AbortSignal,
  ...works: T
): Promise<{ -readonly [K in keyof T]: Awaited<ReturnType<T[K]>> }> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  let failure: { error: unknown } | undefined;
  try {
    const results = await Promise.all(
      works.map((work) =>
        work(controller.signal).catch((error: unknown) => {
          failure ??= { error };
          stop();
          return undefined;
        }),
      ),
    );
    if (failure) throw failure.error;
    return results as { -readonly [K in keyof T]: Awaited<ReturnType<T[K]>> };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
