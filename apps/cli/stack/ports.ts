import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import getPort from 'get-port';
import { z } from 'zod';

const NAMES = ['edge', 'edgeMetrics', 'workerMetrics', 'media', 'simStream', 'simStorage', 'simCdn'] as const;

export type Ports = Record<(typeof NAMES)[number], number>;

const keptSchema = z.record(z.string(), z.int());

/**
 * Free ports of 127.0.0.1 for every app, chosen here so that an app started again is found where it was. The data
 * folder remembers them: what an earlier run published names the simulator's CDN by its port, so a port is only changed
 * where something else has taken it.
 */
export async function takePorts(dataDir: string, edgePort: number | undefined): Promise<Ports> {
  const file = join(dataDir, 'ports.json');
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const kept = keptSchema.parse(JSON.parse(text));
  const ports: Record<string, number> = {};
  for (const name of NAMES) {
    const wanted = kept[name];
    ports[name] = await getPort({ host: '127.0.0.1', ...(wanted !== undefined && { port: wanted }) });
  }
  if (edgePort) ports.edge = edgePort;
  await writeFile(`${file}.tmp`, JSON.stringify(ports));
  await rename(`${file}.tmp`, file);
  return ports as Ports;
}
