import { readFile } from 'node:fs/promises';
import { execa } from 'execa';

/**
 * A text that two processes which get the same pid one after the other never share; `undefined` where no such process
 * runs. A pid alone proves nothing: containers start counting anew at every boot, so a lock of yesterday often names
 * a pid that today belongs to somebody else.
 */
export async function processBirth(pid: number): Promise<string | undefined> {
  return process.platform === 'linux' ? birthFromProc(pid) : birthFromPs(pid);
}

async function birthFromProc(pid: number): Promise<string | undefined> {
  const [stat, bootId] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined),
    readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
  ]);
  // proc(5): the command, field 2, is in parentheses and may hold spaces; the state is field 3, the start time in
  // ticks since boot field 22.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields?.[0];
  const startedAt = fields?.[19];
  if (state === undefined || startedAt === undefined || state === 'Z') return undefined;
  return `${bootId.trim()}/${startedAt}`;
}

async function birthFromPs(pid: number): Promise<string | undefined> {
  const { stdout, exitCode } = await execa('ps', ['-o', 'lstart=', '-p', String(pid)], {
    reject: false,
    // ps writes local time in the user's language; a traveller's laptop must not take a living process for another.
    env: { LC_ALL: 'C', TZ: 'UTC' },
  });
  return exitCode === 0 && stdout.trim() !== '' ? stdout.trim() : undefined;
}
