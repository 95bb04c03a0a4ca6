/** Remembers what was found for a key, for a short time and for so many keys; whoever asks meanwhile shares the finding. */
export interface Memory<T> {
  get(key: string, find: () => Promise<T>): Promise<T>;
  /**
   * What is remembered, at once; undefined where it would have to be found first. With `again` it is found anew, beside,
   * in the second half of its time: so what is always asked for is always there, and no older than without.
   */
  peek(key: string, again?: () => Promise<T>): T | undefined;
  forget(key: string): void;
  clear(): void;
}

interface Entry<T> {
  until: number;
  found: Promise<T>;
  /** Once it is found. */
  value?: T;
  isFoundAnew?: true;
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
  const entries = new Map<string, Entry<T>>();

  const put = (key: string, entry: Entry<T>) => {
    entries.delete(key);
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > max && oldest !== undefined) entries.delete(oldest);
  };

  const findAnew = async (key: string, old: Entry<T>, find: () => Promise<T>) => {
    old.isFoundAnew = true;
    const until = performance.now() + ms;
    const found = find();
    // What fails here fails for whoever asks after the old one's time.
    const value = await found.catch(() => undefined);
    // Where it was forgotten meanwhile, what was found may be from before.
    if (entries.get(key) !== old || value === undefined) return;
    if (keep(value)) put(key, { until, found, value });
    else entries.delete(key);
  };

  return {
    get: (key, find) => {
      const known = entries.get(key);
      if (known && performance.now() < known.until) return known.found;
      const entry: Entry<T> = { until: performance.now() + ms, found: find() };
      put(key, entry);
      const drop = () => {
        if (entries.get(key) === entry) entries.delete(key);
      };
      entry.found.then((found) => {
        if (keep(found)) entry.value = found;
        else drop();
      }, drop);
      return entry.found;
    },
    peek: (key, again) => {
      const entry = entries.get(key);
      const left = entry ? entry.until - performance.now() : 0;
      if (entry?.value === undefined || left <= 0) return undefined;
      if (again && left < ms / 2 && !entry.isFoundAnew) void findAnew(key, entry, again);
      return entry.value;
    },
    forget: (key) => {
      entries.delete(key);
    },
    clear: () => entries.clear(),
  };
}
