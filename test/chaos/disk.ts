import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';

/** The small disk of one media service, which can be made to be full. */
export interface SmallDisk {
  dir: string;
  /**
   * `tmpfs`: a file system of its own, which a ballast file fills. `limit`: nothing can be mounted here; instead the
   * process may write no large file (RLIMIT_FSIZE), which kills the ffmpeg that tries. `none`: neither is possible here.
   */
  means: 'tmpfs' | 'limit' | 'none';
  /** False where it could not be filled. */
  fill(pid: number | null): Promise<boolean>;
  empty(pid: number | null): Promise<void>;
  remove(): Promise<void>;
}

const SIZE_MB = 192;
/** Less than any encoded segment, and more than the log of a run: that is written by the same process. */
const LIMIT_BYTES = 150_000;

const succeeds = async (file: string, args: string[]) => (await execa(file, args, { reject: false })).exitCode === 0;

export async function openSmallDisk(dir: string): Promise<SmallDisk> {
  await mkdir(dir, { recursive: true });
  if (await succeeds('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MB}m,mode=0700`, 'tmpfs', dir])) {
    const ballast = join(dir, 'ballast');
    return {
      dir,
      means: 'tmpfs',
      fill: () => writeUntilFull(ballast).then(() => true),
      empty: () => rm(ballast, { force: true }),
      remove: async () => {
        // Lazily: a process that is still on its way out may hold a file.
        await succeeds('umount', ['-l', dir]);
        await rm(dir, { recursive: true, force: true });
      },
    };
  }
  const limit = (pid: number | null, bytes: string) =>
    pid === null ? Promise.resolve(false) : succeeds('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
  const possible = await succeeds('prlimit', ['--version']);
  return {
    dir,
    means: possible ? 'limit' : 'none',
    fill: (pid) => limit(pid, String(LIMIT_BYTES)),
    empty: async (pid) => void (await limit(pid, 'unlimited')),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

async function writeUntilFull(file: string): Promise<void> {
  const handle = await open(file, 'w');
  try {
    const block = Buffer.alloc(1024 * 1024);
    for (;;) await handle.write(block);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    await handle.close();
  }
}
