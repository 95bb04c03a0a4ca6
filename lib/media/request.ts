import { type Recipe, recipeHash } from '../domain/recipe.ts';
import { timelineFrames } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import type { ComposeRequest } from './contract.ts';

/** Refuses a hash that is not the recipe's (everything is stored under it) and a video that would be empty or too long. */
export function checkRecipe(recipe: Recipe, claimedHash: string): void {
  const hash = recipeHash(recipe);
  if (hash !== claimedHash) {
    throw new AppError('recipe_invalid', { detail: `recipeHash is ${claimedHash}, the recipe's is ${hash}` });
  }
  if (timelineFrames(recipe) === null) throw new AppError('recipe_too_long');
}

/** Refuses what can be seen to be wrong before any work: a recipe that cannot be, an asset that is not given. */
export function checkRequest(request: ComposeRequest): void {
  const { recipe } = request;
  checkRecipe(recipe, request.recipeHash);
  const given = new Set(request.assets.map(({ sha256 }) => sha256));
  const missing = [recipe.source.sha256, ...Object.values(recipe.clips)].filter((sha256) => !given.has(sha256));
  if (missing.length > 0) {
    throw new AppError('invalid_request', {
      issues: missing.map((sha256) => ({ path: 'assets', message: `expects where ${sha256} is` })),
    });
  }
}
