import { readdir, readFile } from 'node:fs/promises';

interface ProcessStat {
  pid: number;
  parent: number;
  /** User and system time of the process and of its children that have ended and been waited for. */
  cpuMs: number;
}

/** The kernel counts in hundredths of a second: USER_HZ, which is 100 on every Linux that Node runs on. */
const TICK_MS = 10;

/** Everything that runs, from /proc (Linux); what ended meanwhile is left out. */
async function processTable(): Promise<ProcessStat[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      // proc(5): the name in parentheses may hold anything; state and parent follow, CPU times are fields 14 to 17.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      if (text === '') return [];
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
      return [{ pid: Number(pid), parent: Number(fields[1]), cpuMs: ticks * TICK_MS }];
    }),
  );
  return found.flat();
}

function treeOf(table: readonly ProcessStat[], root: number): ProcessStat[] {
  const children = table.filter((process) => process.parent === root).flatMap(({ pid }) => treeOf(table, pid));
  return [...table.filter(({ pid }) => pid === root), ...children];
}

/** User and system milliseconds that each of these, processes and all their children, have used so far. */
export async function cpuOf<K extends string>(roots: Record<K, readonly number[]>): Promise<Record<K, number>> {
  const table = await processTable();
  const used = Object.entries<readonly number[]>(roots).map(([name, pids]) => [
    name,
    pids.flatMap((pid) => treeOf(table, pid)).reduce((sum, { cpuMs }) => sum + cpuMs, 0),
  ]);
  return Object.fromEntries(used) as Record<K, number>;
}

export interface RunningProcess {
  pid: number;
  command: string;
}

/** The descendants of a process, with their command lines. */
export async function processesBelow(root: number): Promise<RunningProcess[]> {
  const below = treeOf(await processTable(), root).filter(({ pid }) => pid !== root);
  const found = await Promise.all(
    below.map(async ({ pid }) => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return { pid, command: line.replaceAll('\0', ' ').trim() };
    }),
  );
  // A zombie and a process that has ended meanwhile have no command line.
  return found.filter(({ command }) => command !== '');
}
