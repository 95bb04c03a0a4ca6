/** Remembers what was found for a key, for a short time and for so many keys; whoever asks meanwhile shares the finding. */
export interface Memory<T> {
  get(key: string, find: () => Promise<T>): Promise<T>;
  forget(key: string): void;
  clear(): void;
}

/** `keep` says of what was found whether it is remembered; what fails never is. Beyond `max` keys the oldest goes. */
export function createMemory<T>({
  ms,
  max,
  keep = () => true,
}: {
  ms: number;
  max: number;
  keep?: (found: T) => boolean;
}): Memory<T> {
  const entries = new Map<string, { until: number; found: Promise<T> }>();
  return {
    get: (key, find) => {
      const known = entries.get(key);
      if (known && performance.now() < known.until) return known.found;
      const entry = { until: performance.now() + ms, found: find() };
      entries.delete(key);
      entries.set(key, entry);
      const [oldest] = entries.keys();
      if (entries.size > max && oldest !== undefined) entries.delete(oldest);
      const drop = () => {
        if (entries.get(key) === entry) entries.delete(key);
      };
      entry.found.then((found) => keep(found) || drop(), drop);
      return entry.found;
    },
    forget: (key) => {
      entries.delete(key);
    },
    clear: () => entries.clear(),
  };
}
