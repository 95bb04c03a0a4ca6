import fc from 'fast-check';
import type { RecipeInput } from '../../lib/domain/recipe.ts';

/** A small valid recipe; every field may be replaced. */
export function aRecipe(change: Partial<RecipeInput> = {}): RecipeInput {
  return {
    version: 1,
    exerciseId: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0001',
    language: 'en',
    source: { sha256: 'a'.repeat(64), startMs: 0, turnMs: 1500, endMs: 3000 },
    sets: 2,
    reps: 3,
    restSeconds: 5,
    leadInSeconds: 3,
    clips: {},
    ...change,
  };
}

const phase = fc.option(fc.integer({ min: 0, max: 60_000 }).map((ms) => ms / 1000));
const hash = fc.stringMatching(/^[0-9a-f]{64}$/);

/** Any recipe that the schema accepts (its video may still be too long). */
export const recipeInput: fc.Arbitrary<RecipeInput> = fc
  .record({
    language: fc.constantFrom('en', 'de-AT', 'zh-Hant-TW', 'fr'),
    start: fc.integer({ min: 0, max: 5000 }),
    out: fc.integer({ min: 0, max: 20_000 }),
    back: fc.integer({ min: 250, max: 20_000 }),
    sets: fc.integer({ min: 1, max: 20 }),
    reps: fc.integer({ min: 1, max: 100 }),
    tempo: fc.record({ out: phase, hold: phase, back: phase, pause: phase }),
    restSeconds: fc.integer({ min: 0, max: 600_000 }).map((ms) => ms / 1000),
    leadInSeconds: fc.integer({ min: 0, max: 30_000 }).map((ms) => ms / 1000),
    sides: fc.constantFrom('none' as const, 'left-right' as const, 'alternating' as const),
    cues: fc.constantFrom('voice' as const, 'beeps' as const, 'none' as const),
    clips: fc.dictionary(fc.constantFrom('start', 'hold', 'rest', 'done', 'count-1', 'count-7', 'switch-side'), hash),
    sha256: hash,
  })
  .map(({ start, out, back, sha256, ...rest }) =>
    aRecipe({ ...rest, source: { sha256, startMs: start, turnMs: start + out, endMs: start + out + back } }),
  );
