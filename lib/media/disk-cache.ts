import { randomUUID } from 'node:crypto';
import { copyFile, link, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { withJobDir } from './job-dir.ts';
import { SingleFlight } from './single-flight.ts';

export interface Wanted {
  /** 64 hex digits that name what the file's bytes are. */
  key: string;
  /** Where the caller wants it: a path that does not exist yet. */
  target: string;
}

/**
 * Writes one file for each key, at `paths`, which do not exist yet. Must leave nothing running when it ends, and read none
 * of the caller's files but `inputs`: it may outlive the caller and its folder.
 */
export type Make = (paths: string[], signal: AbortSignal, inputs: string[]) => Promise<void>;

interface Entry {
  bytes: number;
  usedAt: number;
}

/** Suffix of copies being written into the cache; never served, swept when found old. */
const PART = '.part';
const STALE_PART_MS = 24 * 60 * 60 * 1000;

/** Entries beyond the cap go until this share of it is left, so that not every new entry evicts. */
const EVICT_TO = 0.9;

/** Those who wait for files under way. */
type Waiting = Set<readonly Wanted[]>;

/**
 * A content-addressed cache of files on disk. What a key names never changes, so an entry is either whole or absent. It
 * is handed out as a hard link in the caller's own folder, and new files are made outside of the cache and handed to all
 * who wait before they are kept: eviction, a full disk, or the whole folder vanishing at any moment cannot take away
 * what a running bake holds, nor make it work twice.
 */
export class DiskCache {
  readonly #dir: string;
  readonly #workDir: string;
  readonly #maxBytes: number;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #flights = new SingleFlight<void>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #handed = new WeakSet<readonly Wanted[]>();
  #bytes = 0;
  #ready: Promise<void> | undefined;

  /** Files are made in folders of their own below `workDir`. */
  constructor(options: { dir: string; workDir: string; maxBytes: number; log: Logger }) {
    this.#dir = options.dir;
    this.#workDir = options.workDir;
    this.#maxBytes = options.maxBytes;
    this.#log = options.log;
  }

  /** Bytes of all entries known. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Puts every wanted file at its target. Where one is missing all are made, in one go: they come from one run.
   * Concurrent callers of the same keys share that run, which goes on when the one who began it leaves; so `inputs`, the
   * caller's files that it reads, are the run's own before the caller is let go. `reused` is false for the caller whose
   * run it was.
   */
  async fetch(
    wanted: readonly Wanted[],
    signal: AbortSignal,
    make: Make,
    inputs: readonly string[] = [],
  ): Promise<{ reused: boolean }> {
    await this.#scanOnce();
    let reused = true;
    let taken: Promise<unknown> | undefined;
    while (!(await this.#handAll(wanted))) {
      const flight = wanted.map(({ key }) => key).join();
      const waiting = this.#waiting.get(flight) ?? new Set();
      this.#waiting.set(flight, waiting.add(wanted));
      try {
        await this.#flights.join(flight, signal, (flightSignal) => {
          reused = false;
          const run = this.#make(wanted, waiting, flightSignal, make, inputs);
          taken = run.taken;
          return run.made;
        });
      } finally {
        await taken;
        waiting.delete(wanted);
        if (waiting.size === 0) this.#waiting.delete(flight);
      }
      if (this.#handed.has(wanted)) break;
      // One who joined when the files had just been handed out looks into the cache once more; for whoever made them
      // there is nothing more to hope for.
      if (!reused) throw new AppError('internal', { detail: `cannot write ${wanted[0]?.target}` });
    }
    return { reused };
  }

  /** Removes entries that turned out to be damaged. */
  async drop(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      await rm(this.#pathOf(key), { force: true });
      this.#forget(key);
    }
  }

  #pathOf(key: string): string {
    return join(this.#dir, key.slice(0, 2), key);
  }

  async #handAll(wanted: readonly Wanted[]): Promise<boolean> {
    for (const { key, target } of wanted) if (!(await this.#hand(key, target))) return false;
    return true;
  }

  #make(
    wanted: readonly Wanted[],
    waiting: Waiting,
    signal: AbortSignal,
    make: Make,
    inputs: readonly string[],
  ): { made: Promise<void>; taken: Promise<void> } {
    let onTaken: () => void = () => undefined;
    const taken = new Promise<void>((resolve) => {
      onTaken = resolve;
    });
    const made = withJobDir(this.#workDir, async (dir) => {
      const own = inputs.map((_, index) => join(dir, `input-${index}`));
      for (const [index, input] of inputs.entries()) await linkOrCopy(input, own[index] ?? '');
      onTaken();
      const files = wanted.map(({ key }) => ({ key, path: join(dir, key) }));
      await make(
        files.map(({ path }) => path),
        signal,
        own,
      );
      for (const each of waiting) await this.#handMade(each, files);
      try {
        for (const { key, path } of files) await this.#keep(key, path);
        await this.#evict();
      } catch (error) {
        this.#log.warn({ err: error, dir: this.#dir }, 'the disk cache could not be written');
      }
    }).finally(onTaken);
    return { made, taken };
  }

  async #handMade(wanted: readonly Wanted[], made: readonly { key: string; path: string }[]): Promise<void> {
    try {
      for (const [index, { target }] of wanted.entries()) await linkOrCopy(made[index]?.path ?? '', target);
      this.#handed.add(wanted);
    } catch (error) {
      // Whoever left took the folder along; whoever did not finds the files in the cache.
      this.#log.debug({ err: error }, 'a file under way could not be handed out');
    }
  }

  async #keep(key: string, path: string): Promise<void> {
    const place = this.#pathOf(key);
    const part = `${place}.${randomUUID()}${PART}`;
    const { size } = await synced(path);
    await mkdir(dirname(place), { recursive: true });
    try {
      await linkOrCopy(path, part);
      await rename(part, place);
    } finally {
      await rm(part, { force: true });
    }
    this.#note(key, size, Date.now());
  }

  /** False where there is no such entry (any more). */
  async #hand(key: string, target: string): Promise<boolean> {
    const path = this.#pathOf(key);
    try {
      await linkOrCopy(path, target);
    } catch {
      // Not there (any more), or not to be read: made anew either way.
      this.#forget(key);
      return false;
    }
    const now = new Date();
    const { size } = await stat(target);
    this.#note(key, size, now.getTime());
    // The order of use survives a restart; where the entry is gone by now there is nothing to mark.
    await utimes(path, now, now).catch(() => undefined);
    return true;
  }

  #note(key: string, bytes: number, usedAt: number): void {
    this.#forget(key);
    this.#entries.set(key, { bytes, usedAt });
    this.#bytes += bytes;
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#bytes -= entry.bytes;
    this.#entries.delete(key);
  }

  async #evict(): Promise<void> {
    if (this.#bytes <= this.#maxBytes) return;
    const oldestFirst = [...this.#entries].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [key] of oldestFirst) {
      if (this.#bytes <= this.#maxBytes * EVICT_TO) break;
      await rm(this.#pathOf(key), { force: true });
      this.#forget(key);
    }
  }

  #scanOnce(): Promise<void> {
    this.#ready ??= this.#scan().catch((error: unknown) => {
      this.#ready = undefined;
      this.#log.warn({ err: error, dir: this.#dir }, 'the disk cache could not be read');
    });
    return this.#ready;
  }

  async #scan(): Promise<void> {
    await mkdir(this.#dir, { recursive: true });
    for (const shard of await readdir(this.#dir, { withFileTypes: true })) {
      if (!shard.isDirectory()) continue;
      for (const name of await readdir(join(this.#dir, shard.name))) {
        const path = join(this.#dir, shard.name, name);
        const found = await stat(path).catch(() => undefined);
        if (!found?.isFile()) continue;
        // A young one may belong to another process that shares this folder.
        if (name.endsWith(PART)) {
          if (Date.now() - found.mtimeMs > STALE_PART_MS) await rm(path, { force: true });
        } else if (!this.#entries.has(name)) {
          this.#note(name, found.size, found.mtimeMs);
        }
      }
    }
    await this.#evict();
  }
}

/** Codes of a file system that has no hard link to offer, or of two of them. */
const NO_LINK: unknown[] = ['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'];

/** A target that is there already is the same file: what a key names never changes. */
async function linkOrCopy(path: string, target: string): Promise<void> {
  try {
    await link(path, target);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    if (!NO_LINK.includes(codeOf(error))) throw error;
    await copyFile(path, target);
  }
}

async function synced(path: string) {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
    return await handle.stat();
  } finally {
    await handle.close();
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined);
