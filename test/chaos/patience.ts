import { setTimeout as delay } from 'node:timers/promises';

/**
 * Asks until the answer is not null or undefined, and resolves to it; null once `timeoutMs` have passed or `signal` is
 * aborted. What is thrown counts as no answer: in a chaos run everything that can be asked may be away.
 */
export async function until<T>(
  ask: () => Promise<T | null | undefined>,
  { timeoutMs, everyMs = 100, signal }: { timeoutMs: number; everyMs?: number; signal?: AbortSignal },
): Promise<T | null> {
  const deadline = performance.now() + timeoutMs;
  while (!signal?.aborted) {
    const answer = await ask().catch(() => null);
    if (answer !== null && answer !== undefined) return answer;
    if (performance.now() >= deadline) return null;
    await pause(everyMs, signal);
  }
  return null;
}

/** Waits, and no longer than until `signal` is aborted. */
export const pause = async (ms: number, signal?: AbortSignal): Promise<void> => {
  await delay(Math.max(0, ms), undefined, signal && { signal }).catch(() => undefined);
};

/** Carries timed things out, each when its time has come after `startedAt` and none waiting for another; resolves when all are over. */
export async function playTimed<T extends { atMs: number }>(
  timed: readonly T[],
  options: { startedAt: number; signal: AbortSignal; play: (one: T) => Promise<void> },
): Promise<void> {
  const { startedAt, signal, play } = options;
  await Promise.all(
    timed.map(async (one) => {
      await pause(startedAt + one.atMs - Date.now(), signal);
      if (!signal.aborted) await play(one);
    }),
  );
}
