import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const NAME = /^job-(\d+)-/;

/** Runs `work` with a folder of its own, which is gone when this ends, whatever happens. */
export async function withJobDir<T>(workDir: string, work: (dir: string) => Promise<T>): Promise<T> {
  const dir = join(workDir, `job-${process.pid}-${randomUUID()}`);
  await mkdir(dir, { recursive: true });
  try {
    return await work(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Removes what jobs of processes that are no more have left behind. Called before the first job of this process. */
export async function sweepJobDirs(workDir: string): Promise<string[]> {
  await mkdir(workDir, { recursive: true });
  const swept: string[] = [];
  for (const name of await readdir(workDir)) {
    const pid = NAME.exec(name)?.[1];
    if (pid === undefined || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    await rm(join(workDir, name), { recursive: true, force: true });
    swept.push(name);
  }
  return swept;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
