import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalRecipe,
  normaliseRecipe,
  type RecipeInput,
  recipeHash,
  recipeSchema,
} from '../../../lib/domain/recipe.ts';
import { aRecipe, recipeInput } from '../../support/recipes.ts';

const shuffleKeys = (value: unknown, flip: boolean): unknown => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, shuffleKeys(inner, !flip)] as const);
  return Object.fromEntries(flip ? entries.reverse() : entries);
};

describe('recipe hash', () => {
  it('is 64 lower-case hex digits', () => {
    expect(recipeHash(aRecipe())).toMatch(/^[0-9a-f]{64}$/);
  });

  it('stays what it was when this version was released, so that no stored video is baked again by accident', () => {
    expect(recipeHash(aRecipe())).toBe('30dc554add3dccb962eba054766eea78d4268de2d34efec26e34d36ad17e700a');
  });

  it('does not depend on key order or on a detour through JSON', () => {
    fc.assert(
      fc.property(recipeInput, fc.boolean(), (recipe, flip) => {
        const other = JSON.parse(JSON.stringify(shuffleKeys(recipe, flip), null, 2)) as RecipeInput;
        expect(recipeHash(other)).toBe(recipeHash(recipe));
      }),
    );
  });

  it('is the same with defaults left out and with defaults spelled out', () => {
    const { sets, reps, tempo, restSeconds, sides, leadInSeconds, cues, loudness, ...bare } = aRecipe();
    expect(recipeHash(bare)).toBe(
      recipeHash({
        ...bare,
        sets: 3,
        reps: 10,
        tempo: { out: null, hold: null, back: null, pause: null },
        restSeconds: 30,
        sides: 'none',
        leadInSeconds: 5,
        cues: 'voice',
        loudness: -16,
      }),
    );
  });

  it('is the same for "as filmed" and for the filmed length written out', () => {
    const recipe = aRecipe({ source: { sha256: 'a'.repeat(64), startMs: 0, turnMs: 1500, endMs: 4000 } });
    const explicit = { ...recipe, tempo: { out: 1.5, hold: 0, back: 2.5, pause: 0 } };
    expect(recipeHash({ ...recipe, tempo: { out: null, hold: null, back: null, pause: null } })).toBe(
      recipeHash(explicit),
    );
  });

  it('ignores what cannot be seen or heard: the rest of a single set and clips that are never spoken', () => {
    const clip = 'c'.repeat(64);
    expect(recipeHash(aRecipe({ sets: 1, restSeconds: 10 }))).toBe(recipeHash(aRecipe({ sets: 1, restSeconds: 60 })));
    expect(recipeHash(aRecipe({ sides: 'none', clips: { 'switch-side': clip } }))).toBe(
      recipeHash(aRecipe({ clips: {} })),
    );
    expect(recipeHash(aRecipe({ cues: 'beeps', clips: { start: clip } }))).toBe(
      recipeHash(aRecipe({ cues: 'beeps', clips: {} })),
    );
  });

  it('changes with everything that can be seen or heard', () => {
    const base = aRecipe();
    const changes: Partial<RecipeInput>[] = [
      { language: 'de' },
      { sets: 4 },
      { reps: 9 },
      { restSeconds: 31 },
      { leadInSeconds: 4 },
      { sides: 'left-right' },
      { sides: 'alternating' },
      { cues: 'beeps' },
      { cues: 'none' },
      { loudness: -18 },
      { tempo: { out: null, hold: 2, back: null, pause: null } },
      { clips: { start: 'd'.repeat(64) } },
      { source: { ...base.source, endMs: base.source.endMs + 1 } },
      { source: { ...base.source, sha256: 'e'.repeat(64) } },
    ];
    const hashes = [base, ...changes.map((change) => ({ ...base, ...change }))].map(recipeHash);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it('normalises once and for all', () => {
    fc.assert(
      fc.property(recipeInput, (recipe) => {
        const once = normaliseRecipe(recipe);
        expect(normaliseRecipe(once)).toEqual(once);
        expect(recipeHash(once)).toBe(recipeHash(recipe));
      }),
    );
  });

  it('hashes canonical JSON, whatever the order of the keys', () => {
    fc.assert(
      fc.property(recipeInput, fc.boolean(), (recipe, flip) => {
        const text = canonicalRecipe(shuffleKeys(recipe, flip) as RecipeInput);
        expect(text).toBe(canonicalize(JSON.parse(text)));
      }),
    );
  });

  it('writes every length as an integer, so no spelling of a number can differ', () => {
    fc.assert(
      fc.property(recipeInput, (recipe) => {
        JSON.parse(canonicalRecipe(recipe), (_, value) => {
          if (typeof value === 'number') expect(Number.isInteger(value)).toBe(true);
          return value;
        });
      }),
    );
  });
});

describe('recipe schema', () => {
  it.each([
    ['an unknown key', { colour: 'red' }],
    ['no repetition at all', { reps: 0 }],
    ['more sets than allowed', { sets: 21 }],
    ['a half repetition', { reps: 1.5 }],
    [
      'a turning point outside the repetition',
      { source: { sha256: 'a'.repeat(64), startMs: 100, turnMs: 50, endMs: 2000 } },
    ],
    ['a repetition too short to see', { source: { sha256: 'a'.repeat(64), startMs: 0, turnMs: 10, endMs: 20 } }],
    ['a clip with an invented name', { clips: { hello: 'a'.repeat(64) } }],
    ['a hash in capitals', { clips: { start: 'A'.repeat(64) } }],
    ['a language that is none', { language: 'english please' }],
  ])('refuses %s', (_, change) => {
    expect(recipeSchema.safeParse({ ...aRecipe(), ...change }).success).toBe(false);
  });
});
