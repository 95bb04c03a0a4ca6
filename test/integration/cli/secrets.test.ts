import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ensureSecrets, readSecrets } from '../../../apps/cli/stack/secrets.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

it('the secrets of a data folder are made once, for their owner only', async () => {
  const dir = await makeTempDir();
  expect(await readSecrets(dir)).toBeNull();
  const made = await ensureSecrets(dir);
  expect(await ensureSecrets(dir)).toEqual(made);
  expect(await readSecrets(dir)).toEqual(made);
  expect((await stat(join(dir, 'secrets.json'))).mode & 0o777).toBe(0o600);
});

it('those of an older version are kept, and what it did not know is made', async () => {
  const dir = await makeTempDir();
  const { webhookSigningKey: _, ...older } = await ensureSecrets(dir);
  const file = join(dir, 'secrets.json');
  await writeFile(file, JSON.stringify(older));
  expect(await readSecrets(dir)).toEqual(older);
  const filled = await ensureSecrets(dir);
  expect(filled).toMatchObject(older);
  expect(filled.webhookSigningKey).toMatch(/^[0-9a-f]{64}$/);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(filled);
});
