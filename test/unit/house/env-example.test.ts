import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../..');

/** What the machine sets, and nobody configures for us. */
const NOT_OURS = new Set(['PATH']);

it('.env.example names every variable that an app reads, and none that nobody reads', async () => {
  const read = new Set<string>();
  for (const file of await readdir(join(root, 'lib/config'))) {
    const text = await readFile(join(root, 'lib/config', file), 'utf8');
    for (const [, name] of text.matchAll(/^ {2}([A-Z][A-Z0-9_]+):/gm)) if (name && !NOT_OURS.has(name)) read.add(name);
  }
  const example = await readFile(join(root, '.env.example'), 'utf8');
  const named = new Set([...example.matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(([, name]) => name));
  // For the Postgres image itself.
  named.delete('POSTGRES_PASSWORD');
  expect(read.size).toBeGreaterThan(60);
  expect([...named].sort()).toEqual([...read].sort());
});
