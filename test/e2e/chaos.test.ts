import { readdir } from 'node:fs/promises';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { built } from '../support/built.ts';
import { makeTempDir } from '../support/temp-dir.ts';

const resultSchema = z.looseObject({
  held: z.boolean(),
  violations: z.array(z.looseObject({ invariant: z.string(), detail: z.string() })),
  faults: z.record(z.string(), z.int()),
  bakes: z.int(),
});

it('loses nothing in a few seconds of chaos, and leaves nothing behind', { timeout: 300_000 }, async () => {
  const dir = await makeTempDir();
  const args = ['--seed', '2', '--minutes', '0.15', '--renders', '4', '--json'];
  const { stdout, stderr, exitCode } = await execa(process.execPath, [built('test/chaos/main.ts'), ...args], {
    env: { TMPDIR: dir },
    reject: false,
    timeout: 290_000,
  });
  const result = resultSchema.parse(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? ''));
  expect(result.violations, stderr).toEqual([]);
  expect(exitCode).toBe(0);
  expect(Object.keys(result.faults).length).toBeGreaterThan(1);
  expect(result.bakes).toBeGreaterThanOrEqual(4);
  expect(await readdir(dir)).toEqual([]);
});
