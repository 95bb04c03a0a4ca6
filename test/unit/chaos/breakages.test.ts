import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BREAKAGES, breakSource } from '../../chaos/breakages.ts';

const root = join(import.meta.dirname, '../../..');

describe('breakages', () => {
  it.each(Object.entries(BREAKAGES))('“%s” still fits the code that it breaks', async (_, { file, ...change }) => {
    const source = await readFile(join(root, file), 'utf8');
    expect(breakSource(source, change)).not.toBe(source);
  });

  it('refuses a change that fits nowhere, or in two places', () => {
    expect(() => breakSource('a b', { find: 'c', put: 'd' })).toThrow(/0 times/);
    expect(() => breakSource('a a', { find: 'a', put: 'd' })).toThrow(/2 times/);
  });
});
