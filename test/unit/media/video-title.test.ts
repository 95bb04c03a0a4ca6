import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashInTitle, videoTitle } from '../../../lib/media/video-title.ts';

const hash = 'ab'.repeat(32);
const prefix = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,20}$/);

describe('the title of a video', () => {
  it('gives back the piece of the recipe hash that it was made with', () => {
    fc.assert(
      fc.property(prefix, fc.stringMatching(/^[0-9a-f]{64}$/), (name, recipeHash) => {
        expect(hashInTitle(name, videoTitle(name, recipeHash))).toBe(recipeHash.slice(0, 32));
      }),
    );
  });

  it('is foreign to every installation but the one of its prefix', () => {
    fc.assert(
      fc.property(prefix, prefix, (ours, theirs) => {
        fc.pre(ours !== theirs);
        expect(hashInTitle(ours, videoTitle(theirs, hash))).toBeNull();
      }),
    );
    expect(hashInTitle('bakehouse', videoTitle('bakehouse staging', hash))).toBeNull();
  });

  it.each([
    '',
    'bakehouse',
    'bakehouse ',
    'Holiday 2026',
    `bakehouse ${hash.slice(0, 31)}`,
    `bakehouse ${hash.slice(0, 33)}`,
    `bakehouse ${hash}`,
    `bakehouse  ${hash.slice(0, 31)}`,
    `Bakehouse ${hash.slice(0, 32)}`,
    `bakehouse ${hash.slice(0, 32).toUpperCase()}`,
    `bakehouse ${hash.slice(0, 32)} (copy)`,
    ` bakehouse ${hash.slice(0, 32)}`,
    `bakehouse\t${hash.slice(0, 32)}`,
  ])('is not %j', (title) => {
    expect(hashInTitle('bakehouse', title)).toBeNull();
  });
});
