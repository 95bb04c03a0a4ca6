import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * Writes a small file so that it is old or new, never half. Synchronous on purpose: what is in memory and what is on
 * disk change in the same turn, so two requests cannot interleave.
 */
export function writeWhole(file: string, content: string | Uint8Array): void {
  const temp = join(dirname(file), `.${basename(file)}.${randomUUID()}.tmp`);
  writeFileSync(temp, content);
  renameSync(temp, file);
}

/** Every `*.json` of a folder, which is made where it is missing; what a crash left half-written is removed. */
export function readAllJson(folder: string): unknown[] {
  mkdirSync(folder, { recursive: true });
  const found: unknown[] = [];
  for (const name of readdirSync(folder)) {
    if (name.endsWith('.tmp')) rmSync(join(folder, name));
    else if (name.endsWith('.json')) found.push(JSON.parse(readFileSync(join(folder, name), 'utf8')));
  }
  return found;
}

/** An empty folder, whatever was in it. */
export function emptyFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}
