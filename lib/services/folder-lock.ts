import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { livingProcess, type ProcessRecord, recordOf } from './process-record.ts';

export interface FolderLock {
  release(): Promise<void>;
}

/** Another process has the folder. */
export class FolderInUse extends Error {
  constructor(folder: string, pid: number) {
    super(
      `The data folder ${folder} is in use by process ${pid}. Stop that one first, or give this one another folder.`,
    );
    this.name = 'FolderInUse';
  }
}

const ATTEMPTS = 5;

/**
 * Takes the data folder for this process (making it where it is missing). Two servers writing one database or one
 * append-only file would ruin it, so a second run is refused by a `FolderInUse` that names the first; what a killed run
 * left behind does not count.
 *
 * Every run writes a claim of its own and only then looks for the claims of others, so of two runs at least one sees the
 * other and withdraws. A single lock file would not do: between finding it stale and replacing it, another run may have
 * replaced it already. Two that start at one moment may both withdraw, hence the attempts at random intervals.
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const claims = join(folder, 'claims');
  // 0711: the unprivileged account that Postgres runs as, where we are root, must be able to pass through.
  await mkdir(folder, { recursive: true, mode: 0o711 });
  await mkdir(claims, { recursive: true, mode: 0o700 });
  for (let attempt = 1; ; attempt++) {
    const mine = randomUUID();
    const withdraw = () => rm(join(claims, mine), { force: true });
    // By rename, so that nobody reads half a claim and takes it for a dead one.
    const partial = join(folder, `${mine}.partial`);
    await writeFile(partial, JSON.stringify(await recordOf(process.pid)), { mode: 0o600 });
    await rename(partial, join(claims, mine));
    const other = await otherClaimant(claims, mine);
    if (!other) return { release: withdraw };
    await withdraw();
    if (attempt === ATTEMPTS) throw new FolderInUse(folder, other.pid);
    await delay(20 + Math.random() * 80);
  }
}

/** The process behind any claim but ours. Claims of the dead are removed: their names never come back. */
async function otherClaimant(claims: string, mine: string): Promise<ProcessRecord | undefined> {
  for (const name of await readdir(claims)) {
    if (name === mine) continue;
    const claimant = await livingProcess(join(claims, name));
    if (claimant) return claimant;
    await rm(join(claims, name), { force: true });
  }
  return undefined;
}
