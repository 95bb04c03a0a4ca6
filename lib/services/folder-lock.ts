import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { livingProcess, recordOf } from './process-record.ts';

export interface FolderLock {
  release(): Promise<void>;
}

/**
 * Takes the data folder for this process (making it where it is missing). Two servers writing one database or one
 * append-only file would ruin it, so a second run is refused with a sentence that names the first; what a killed run
 * left behind is taken over.
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  // 0711: the unprivileged account that Postgres runs as, where we are root, must be able to pass through.
  await mkdir(folder, { recursive: true, mode: 0o711 });
  const lock = join(folder, 'services.lock');
  const mine = `${lock}.${randomUUID()}`;
  const content = JSON.stringify(await recordOf(process.pid));
  // link(2) publishes the file complete or not at all, so that nobody can read a half-written lock and think it stale.
  await writeFile(mine, content, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 10; attempt++) {
      if (await tryLink(mine, lock)) return { release: () => releaseLock(lock, content) };
      const holder = await livingProcess(lock);
      if (holder) {
        throw new Error(
          `The data folder ${folder} is in use by process ${holder.pid}. Stop that one first, or give this one another folder.`,
        );
      }
      await setStaleAside(lock);
    }
  } finally {
    await rm(mine, { force: true });
  }
  throw new Error(`The data folder ${folder} could not be locked: others keep taking it.`);
}

async function releaseLock(lock: string, content: string): Promise<void> {
  const current = await readFile(lock, 'utf8').catch(() => undefined);
  if (current === content) await rm(lock, { force: true });
}

/** Between judging a lock stale and removing it another run may have taken its place; that one is put back. */
async function setStaleAside(lock: string): Promise<void> {
  const aside = `${lock}.${randomUUID()}`;
  try {
    await rename(lock, aside);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  if (await livingProcess(aside)) await tryLink(aside, lock);
  await rm(aside, { force: true });
}

async function tryLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
