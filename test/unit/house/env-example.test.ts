import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../..');

/** What the machine sets, and nobody configures for us. */
const NOT_OURS = new Set(['PATH']);

async function variablesOf(file: string): Promise<string[]> {
  const text = await readFile(join(root, 'lib/config', file), 'utf8');
  return [...text.matchAll(/^ {2}([A-Z][A-Z0-9_]+):/gm)].flatMap(([, name]) =>
    name && !NOT_OURS.has(name) ? [name] : [],
  );
}

/** In the image ffmpeg is on PATH; and a simulator that bakes nothing is for tests. */
const NOT_IN_COMPOSE = new Set(['FFMPEG_PATH', 'FFPROBE_PATH', 'SIM_FAST']);

it.each(['edge', 'worker', 'media', 'bunny-sim'])(
  'docker-compose.yml hands %s what it reads and no more',
  async (app) => {
    const compose = await readFile(join(root, 'docker-compose.yml'), 'utf8');
    const service = new RegExp(`\n  ${app}:\n((?: {4}.*\n)+)`).exec(compose)?.[1] ?? '';
    const handed = [...service.matchAll(/^ {6}([A-Z][A-Z0-9_]+):/gm)].map(([, name]) => name);
    const shared = app === 'worker' ? await variablesOf('pipeline.ts') : [];
    const read = ['NODE_ENV', 'LOG_LEVEL', ...shared, ...(await variablesOf(`${app}.ts`))].filter(
      (name) => !NOT_IN_COMPOSE.has(name),
    );
    expect(handed.sort()).toEqual([...new Set(read)].sort());
  },
);

it('.env.example names every variable that an app reads, and none that nobody reads', async () => {
  const read = new Set<string>();
  for (const file of await readdir(join(root, 'lib/config'))) {
    for (const name of await variablesOf(file)) read.add(name);
  }
  const example = await readFile(join(root, '.env.example'), 'utf8');
  const named = new Set([...example.matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(([, name]) => name));
  // For the Postgres image itself.
  named.delete('POSTGRES_PASSWORD');
  expect(read.size).toBeGreaterThan(60);
  expect([...named].sort()).toEqual([...read].sort());
});
