import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readAllJson, writeWhole } from './disk.ts';
import type { Received } from './http.ts';

const objectSchema = z.object({
  guid: z.string(),
  /** Below the zone, without slashes at its ends. */
  path: z.string(),
  isDirectory: z.boolean(),
  bytes: z.number(),
  /** Upper-case hex; null for a directory. */
  checksum: z.string().nullable(),
  contentType: z.string(),
  createdAt: z.number(),
  changedAt: z.number(),
});
export type ZoneObject = z.infer<typeof objectSchema>;

/**
 * The files of the storage zone. Each is kept as a blob and a record under a fresh id, so that replacing one is a single
 * rename and whoever is reading the old one reads it to its end.
 */
export class Zone {
  readonly #objects = new Map<string, ZoneObject>();
  readonly #records: string;
  readonly #blobs: string;

  constructor(dir: string) {
    this.#records = join(dir, 'records');
    this.#blobs = join(dir, 'blobs');
    mkdirSync(this.#blobs, { recursive: true });
    for (const found of readAllJson(this.#records)) this.#adopt(objectSchema.parse(found));
    const known = new Set([...this.#objects.values()].map((object) => object.guid));
    for (const guid of readdirSync(this.#blobs)) if (!known.has(guid)) rmSync(join(this.#blobs, guid));
  }

  find(path: string): ZoneObject | undefined {
    return this.#objects.get(path);
  }

  /** Where the bytes of a file are. */
  blob(object: ZoneObject): string {
    return join(this.#blobs, object.guid);
  }

  /** Takes a received file over, replacing what was there; `false` where a directory stands there or a file in the way. */
  put(path: string, received: Received, contentType: string): boolean {
    if (this.isDirectory(path) || this.#fileAbove(path)) return false;
    const object = this.#record(path, { bytes: received.bytes, checksum: received.sha256.toUpperCase(), contentType });
    renameSync(received.file, this.blob(object));
    this.#store(object);
    return true;
  }

  /** `false` where a file stands there or in the way. */
  makeDirectory(path: string): boolean {
    if (this.#fileAbove(`${path}/`)) return false;
    if (!this.isDirectory(path)) {
      this.#store({ ...this.#record(path, { bytes: 0, checksum: null, contentType: '' }), isDirectory: true });
    }
    return true;
  }

  /** `''` is the root, which always is one. */
  isDirectory(path: string): boolean {
    return path === '' || this.#objects.get(path)?.isDirectory === true || this.#below(path).next().done === false;
  }

  /** What stands directly in a directory; directories that exist only by their files are among it. */
  list(directory: string): ZoneObject[] {
    const prefix = directory === '' ? '' : `${directory}/`;
    const found = new Map<string, ZoneObject>();
    for (const object of this.#below(directory)) {
      const name = object.path.slice(prefix.length).split('/', 1)[0] ?? '';
      const path = `${prefix}${name}`;
      if (object.path === path) found.set(name, object);
      else if (!found.has(name)) {
        found.set(name, {
          ...object,
          guid: randomUUID(),
          path,
          isDirectory: true,
          bytes: 0,
          checksum: null,
          contentType: '',
        });
      }
    }
    return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** A file, or a directory with all that is in it; false where there was neither. */
  delete(path: string): boolean {
    const doomed = [...this.#below(path)];
    const itself = this.#objects.get(path);
    if (itself) doomed.push(itself);
    for (const object of doomed) {
      this.#objects.delete(object.path);
      this.#erase(object);
    }
    return doomed.length > 0;
  }

  *#below(directory: string): Generator<ZoneObject> {
    const prefix = directory === '' ? '' : `${directory}/`;
    for (const object of this.#objects.values()) if (object.path.startsWith(prefix)) yield object;
  }

  #fileAbove(path: string): boolean {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      if (this.#objects.get(path.slice(0, at))?.isDirectory === false) return true;
    }
    return false;
  }

  #record(path: string, facts: Pick<ZoneObject, 'bytes' | 'checksum' | 'contentType'>): ZoneObject {
    const now = Date.now();
    const createdAt = this.#objects.get(path)?.createdAt ?? now;
    return { guid: randomUUID(), path, isDirectory: false, ...facts, createdAt, changedAt: now };
  }

  #store(object: ZoneObject): void {
    writeWhole(join(this.#records, `${object.guid}.json`), JSON.stringify(object));
    this.#adopt(object);
  }

  /** After a crash between the two steps of a replacement both records are there: the later one counts. */
  #adopt(object: ZoneObject): void {
    const other = this.#objects.get(object.path);
    const [kept, dropped] = other && other.changedAt > object.changedAt ? [other, object] : [object, other];
    this.#objects.set(kept.path, kept);
    if (dropped) this.#erase(dropped);
  }

  #erase(object: ZoneObject): void {
    rmSync(join(this.#records, `${object.guid}.json`), { force: true });
    rmSync(this.blob(object), { force: true });
  }
}
