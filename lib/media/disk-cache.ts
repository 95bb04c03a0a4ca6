import { randomUUID } from 'node:crypto';
import { copyFile, link, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from '../log.ts';
import { SingleFlight } from './single-flight.ts';

export interface Wanted {
  /** 64 hex digits that name what the file's bytes are. */
  key: string;
  /** Where the caller wants it: a path that does not exist yet. */
  target: string;
}

/** Writes one file for each key, at `paths`, which do not exist yet. Must leave nothing running when it ends. */
export type Make = (paths: string[], signal: AbortSignal) => Promise<void>;

interface Entry {
  bytes: number;
  usedAt: number;
}

/** Suffix of files being written; never served, swept when found old. */
const PART = '.part';
const STALE_PART_MS = 24 * 60 * 60 * 1000;

/** Entries beyond the cap go until this share of it is left, so that not every new entry evicts. */
const EVICT_TO = 0.9;

/**
 * A content-addressed cache of files on disk. What a key names never changes, so an entry is either whole or absent:
 * written beside its place, synced, renamed. It is handed out as a hard link in the caller's own folder: eviction, or
 * the whole folder vanishing, cannot take away what a running bake holds.
 */
export class DiskCache {
  readonly #dir: string;
  readonly #maxBytes: number;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #flights = new SingleFlight<{ made: boolean }>();
  #bytes = 0;
  #ready: Promise<void> | undefined;

  constructor(options: { dir: string; maxBytes: number; log: Logger }) {
    this.#dir = options.dir;
    this.#maxBytes = options.maxBytes;
    this.#log = options.log;
  }

  /** Bytes of all entries known. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Puts every wanted file at its target. Where one is missing all are made, in one go: they come from one run.
   * Concurrent callers of the same keys share that run. Resolves to whether all were there.
   */
  async fetch(wanted: readonly Wanted[], signal: AbortSignal, make: Make): Promise<{ reused: boolean }> {
    await this.#scanOnce();
    if (await this.#handAll(wanted)) return { reused: true };
    const keys = wanted.map(({ key }) => key);
    const { made } = await this.#flights.join(keys.join(), signal, async (flightSignal) => {
      // Between our look and this start another flight may have finished it.
      if (await this.#haveAll(keys)) return { made: false };
      await this.#makeAll(keys, flightSignal, make);
      return { made: true };
    });
    if (await this.#handAll(wanted)) return { reused: !made };
    // Evicted or wiped between making and linking: make them where they are wanted.
    const targets = wanted.map(({ target }) => target);
    await Promise.all(targets.map((target) => rm(target, { force: true })));
    await make(targets, signal);
    return { reused: false };
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

  async #haveAll(keys: readonly string[]): Promise<boolean> {
    const found = await Promise.all(keys.map((key) => stat(this.#pathOf(key)).catch(() => undefined)));
    return found.every(Boolean);
  }

  async #handAll(wanted: readonly Wanted[]): Promise<boolean> {
    for (const { key, target } of wanted) if (!(await this.#hand(key, target))) return false;
    return true;
  }

  async #makeAll(keys: readonly string[], signal: AbortSignal, make: Make): Promise<void> {
    const parts = keys.map((key) => `${this.#pathOf(key)}.${randomUUID()}${PART}`);
    for (const part of parts) await mkdir(dirname(part), { recursive: true });
    try {
      await make(parts, signal);
      for (const [index, key] of keys.entries()) {
        const part = parts[index] ?? '';
        const { size } = await synced(part);
        await rename(part, this.#pathOf(key));
        this.#note(key, size, Date.now());
      }
    } finally {
      await Promise.all(parts.map((part) => rm(part, { force: true })));
    }
    await this.#evict();
  }

  /** False where there is no such entry (any more). */
  async #hand(key: string, target: string): Promise<boolean> {
    const path = this.#pathOf(key);
    try {
      await link(path, target);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'ENOENT') {
        this.#forget(key);
        return false;
      }
      // Handed out by an attempt that then found another file of the set missing.
      if (code === 'EEXIST') return true;
      // Another filesystem, or one without hard links.
      if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK' && code !== 'ENOTSUP') throw error;
      await copyFile(path, target);
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
