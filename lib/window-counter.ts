/** How a key stands in its window. */
export interface Standing {
  /** Within the limit; what was refused is not counted. */
  allowed: boolean;
  left: number;
  endsInMs: number;
}

export interface WindowCounter {
  readonly limit: number;
  /** Counts one more. */
  take(key: string): Standing;
  /** Whether one more would be allowed; counts nothing. */
  look(key: string): Standing;
}

interface Window {
  count: number;
  endsAt: number;
}

/**
 * Counts what happens per key in windows of `windowMs`, each of which begins with a key's first. Of `max` keys at most:
 * beyond that the one whose window ends first is forgotten. Answers at once, with no promise: it stands before every request.
 */
export function createWindowCounter({
  limit,
  windowMs,
  max = 100_000,
}: {
  limit: number;
  windowMs: number;
  max?: number;
}): WindowCounter {
  /** In the order in which they end, since all are equally long. */
  const windows = new Map<string, Window>();

  const begin = (key: string, now: number): Window => {
    windows.delete(key);
    for (const [other, { endsAt }] of windows) {
      if (endsAt > now && windows.size < max) break;
      windows.delete(other);
    }
    const window = { count: 0, endsAt: now + windowMs };
    windows.set(key, window);
    return window;
  };
  const standing = ({ count, endsAt }: Window, allowed: boolean, now: number): Standing => ({
    ...{ allowed, left: limit - count, endsInMs: endsAt - now },
  });
  const current = (key: string, now: number) => {
    const known = windows.get(key);
    return known && known.endsAt > now ? known : undefined;
  };

  return {
    limit,
    take: (key) => {
      const now = performance.now();
      const window = current(key, now) ?? begin(key, now);
      const allowed = window.count < limit;
      if (allowed) window.count += 1;
      return standing(window, allowed, now);
    },
    look: (key) => {
      const now = performance.now();
      const window = current(key, now) ?? { count: 0, endsAt: now + windowMs };
      return standing(window, window.count < limit, now);
    },
  };
}
