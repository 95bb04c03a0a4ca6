import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** The host is part of it: in containers that share the folder every service may be process 1. */
const HOST = hostname().replaceAll(/[^A-Za-z0-9]/g, '_');
const NAME = /^job-([A-Za-z0-9_]+)-(\d+)-/;

/** Runs `work` with a folder of its own, which is gone when this ends, whatever happens. */
export async function withJobDir<T>(workDir: string, work: (dir: string) => Promise<T>): Promise<T> {
  const dir = join(workDir, `job-${HOST}-${process.pid}-${randomUUID()}`);
  await mkdir(dir, { recursive: true });
  try {
    return await work(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * Removes what jobs of this host's processes that are no more have left behind: their programs, which nobody can stop any
 * more (one that hangs would do so for ever), and their folders. Called before the first job of this process.
 */
export async function sweepJobDirs(workDir: string): Promise<string[]> {
  await mkdir(workDir, { recursive: true });
  const swept: string[] = [];
  for (const name of await readdir(workDir)) {
    const [, host, pid] = NAME.exec(name) ?? [];
    if (host !== HOST || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    await killStrays(join(workDir, name));
    await rm(join(workDir, name), { recursive: true, force: true });
    swept.push(name);
  }
  return swept;
}

/** Kills whoever has a file of this folder among its arguments. Its name is a job's alone; without /proc nothing is found. */
async function killStrays(dir: string): Promise<void> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  for (const pid of pids) {
    const args = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!args.includes(`file:${dir}/`)) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Ended by itself meanwhile.
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
