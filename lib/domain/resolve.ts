import {
  COMPOSER_VERSION,
  type Dose,
  MAX_REP_MS,
  MIN_REP_MS,
  normalForm,
  normalisedHash,
  type Recipe,
  usableCues,
} from './recipe.ts';
import { timelineFrames } from './timeline.ts';

/** What a programme's item needs of its exercise to become a recipe. */
export interface ResolveInput {
  exerciseId: string;
  language: string;
  dose: Dose;
  source: { sha256: string; durationMs: number } | null;
  marks: { startMs?: number | undefined; turnMs?: number | undefined; endMs?: number | undefined };
  clips: readonly { language: string; name: string; sha256: string }[];
}

export type Resolution =
  | { ok: true; recipe: Recipe; hash: string }
  | { ok: false; code: RecipeProblem; sentence: string };

/** Why an item cannot become a recipe; each is a code of the table of errors. */
export type RecipeProblem =
  | 'source_missing'
  | 'source_too_long'
  | 'source_too_short'
  | 'recipe_invalid'
  | 'recipe_too_long';

const secondsOf = (milliseconds: number) => `${(milliseconds / 1000).toFixed(1)} s`;

/**
 * Fills in an item's recipe: the marked repetition (by default the whole source, turning half way), the clips of the
 * language (else of its base language), the dose. Says in a sentence for the clinic why it cannot.
 *
 * What it is given comes out of the database, where it was put as the schemas had read it; to read a thousand recipes by
 * theirs once more takes as long as all the rest of this.
 */
export function resolveRecipe(input: ResolveInput): Resolution {
  const { source, marks, dose } = input;
  if (!source) return refuse('source_missing', 'The exercise has no source video yet.');
  const startMs = marks.startMs ?? 0;
  const endMs = marks.endMs ?? source.durationMs;
  const turnMs = marks.turnMs ?? Math.round((startMs + endMs) / 2);
  if (endMs > source.durationMs) {
    return refuse(
      'recipe_invalid',
      `The repetition is marked to end at ${secondsOf(endMs)}, but the video lasts ${secondsOf(source.durationMs)}.`,
    );
  }
  if (!(startMs <= turnMs && turnMs <= endMs)) {
    return refuse('recipe_invalid', 'The repetition must be marked as start, turning point and end, in this order.');
  }
  if (endMs - startMs > MAX_REP_MS) {
    return refuse(
      'source_too_long',
      `One repetition may last at most ${secondsOf(MAX_REP_MS)}, this one lasts ${secondsOf(endMs - startMs)}; mark where it starts and ends.`,
    );
  }
  if (endMs - startMs < MIN_REP_MS) {
    return refuse(
      'source_too_short',
      `One repetition must last at least ${secondsOf(MIN_REP_MS)}, this one lasts ${secondsOf(endMs - startMs)}.`,
    );
  }
  const recipe = normalForm({
    version: COMPOSER_VERSION,
    exerciseId: input.exerciseId,
    language: input.language,
    source: { sha256: source.sha256, startMs, turnMs, endMs },
    ...dose,
    clips: clipsFor(input),
  });
  if (timelineFrames(recipe) === null)
    return refuse('recipe_too_long', 'The video would last longer than 60 minutes, or no time at all.');
  return { ok: true, recipe, hash: normalisedHash(recipe) };
}

const refuse = (code: RecipeProblem, sentence: string): Resolution => ({ ok: false, code, sentence });

function clipsFor({ clips, dose, language }: ResolveInput): Record<string, string> {
  if (clips.length === 0) return {};
  const usable = usableCues(dose, Math.round((dose.tempo.hold ?? 0) * 1000));
  const chosen: Record<string, string> = {};
  for (const wanted of [language.split('-')[0], language]) {
    for (const clip of clips) if (clip.language === wanted && usable.has(clip.name)) chosen[clip.name] = clip.sha256;
  }
  return chosen;
}

/** Where an asset of known content lies in the storage zone: shared for the platform, apart for each organisation. */
export const assetPath = (owner: { tier: 'platform' } | { tier: 'org'; orgId: string }, sha256: string) =>
  owner.tier === 'platform' ? `assets/platform/${sha256}` : `assets/orgs/${owner.orgId}/${sha256}`;
