import fc from 'fast-check';
import { expect, it } from 'vitest';
import { doseSchema, normaliseRecipe, recipeHash } from '../../../lib/domain/recipe.ts';
import { resolveRecipe } from '../../../lib/domain/resolve.ts';
import { recipeInput } from '../../support/recipes.ts';

it('makes of a stored dose the recipe, and the hash, that reading the whole by its schema makes', () => {
  fc.assert(
    fc.property(recipeInput, (input) => {
      const { version, exerciseId, language, source, clips = {}, ...given } = input;
      const dose = JSON.parse(JSON.stringify(doseSchema.parse(given)));
      const { sha256, ...marks } = source;
      const resolution = resolveRecipe({
        exerciseId,
        language,
        dose,
        source: { sha256, durationMs: source.endMs },
        marks,
        clips: Object.entries(clips).map(([name, clip]) => ({ language, name, sha256: clip })),
      });
      const expected = { recipe: normaliseRecipe(input), hash: recipeHash(input) };
      if (resolution.ok) expect(resolution).toEqual({ ok: true, ...expected });
      else expect(resolution.code).toBe('recipe_too_long');
    }),
  );
});
