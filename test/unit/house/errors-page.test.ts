import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ERRORS } from '../../../lib/errors.ts';

it('the page of errors lists every code as the table of errors has it, and no other', async () => {
  const page = await readFile(`${import.meta.dirname}/../../../docs/errors.md`, 'utf8');
  const listed = page.split('\n').flatMap((line) => {
    const row = /^\| `(\w+)` \| (\d+) \| (yes|no) \| (.+) \|$/.exec(line);
    return row ? [[row[1], { status: Number(row[2]), retryable: row[3] === 'yes', sentence: row[4] }]] : [];
  });
  expect(Object.fromEntries(listed)).toEqual(ERRORS);
  expect(listed).toHaveLength(Object.keys(ERRORS).length);
});
