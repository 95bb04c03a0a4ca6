import { readdir, readFile, readlink } from 'node:fs/promises';

/** The local ports of a process's TCP connections, as Linux lists them: proc(5), /proc/net/tcp. Empty elsewhere. */
export async function portsOf(pid: number): Promise<number[]> {
  const links = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const targets = await Promise.all(links.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  const inodes = new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/${pid}/net/${name}`, 'utf8').catch(() => '')),
  );
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .flatMap((line) => {
      const fields = line.trim().split(/\s+/);
      const port = fields[1]?.split(':')[1];
      return port !== undefined && inodes.has(fields[9] ?? '') ? [Number.parseInt(port, 16)] : [];
    });
}
