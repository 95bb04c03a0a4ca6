import { setTimeout as delay } from 'node:timers/promises';

/**
 * Polls until `fn` answers something truthy and resolves to that. What it throws counts as "not yet". The error after
 * `timeoutMs` says what was waited for and what was seen last.
 */
export async function waitFor<T>(
  fn: () => T | Promise<T>,
  options: { label: string; timeoutMs?: number; everyMs?: number },
): Promise<NonNullable<T>> {
  const { label, timeoutMs = 10_000, everyMs = 25 } = options;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      last = await fn();
      if (last) return last as NonNullable<T>;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${label}; last seen: ${String(last)}`, { cause: last });
    }
    await delay(everyMs);
  }
}
