import { hash } from 'node:crypto';
import { z } from 'zod';

/** Part of every hash: raise it when the same recipe would bake to something a patient sees or hears differently. */
export const COMPOSER_VERSION = 1;

/** The longest video one recipe may make. */
export const MAX_DURATION_MS = 60 * 60 * 1000;

/** The longest and the shortest stretch of film that counts as one repetition. */
export const MAX_REP_MS = 60_000;
export const MIN_REP_MS = 250;

export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/, 'expects 64 lower-case hex digits (SHA-256)');

/** BCP 47, in the subset that names a spoken language: `en`, `de-AT`, `zh-Hant-TW`. */
export const languageTag = z
  .string()
  .max(35)
  .regex(
    /^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?$/,
    'expects a BCP 47 language tag such as "en" or "de-AT"',
  )
  .transform((tag) => Intl.getCanonicalLocales(tag)[0] ?? tag);

/** Seconds at millisecond resolution, so that every spelling of one length is one integer of milliseconds. */
const seconds = (min: number, max: number) =>
  z
    .number()
    .min(min)
    .max(max)
    .transform((value) => Math.round(value * 1000) / 1000);

const phase = seconds(0, 60).nullable().default(null);

/** Seconds of each phase of a repetition; null = as filmed (a film has no hold and no pause of its own). */
export const tempoSchema = z.strictObject({ out: phase, hold: phase, back: phase, pause: phase });

const tempoField = tempoSchema.default({ out: null, hold: null, back: null, pause: null });

export const cueStyle = z.enum(['voice', 'beeps', 'none']);
export const sidesMode = z.enum(['none', 'left-right', 'alternating']);

const doseFields = {
  sets: z.int().min(1).max(20).default(3),
  reps: z.int().min(1).max(100).default(10),
  tempo: tempoField,
  restSeconds: seconds(0, 600).default(30),
  sides: sidesMode.default('none'),
  leadInSeconds: seconds(0, 30).default(5),
  cues: cueStyle.default('voice'),
  loudness: z.number().min(-30).max(-10).multipleOf(0.1).default(-16),
};

/**
 * What a specialist prescribes for one exercise; unknown keys are refused, everything left out has a default. It is
 * stored with every field and not read by this again: a new field needs a migration that puts it into what is stored.
 */
export const doseSchema = z.strictObject(doseFields);
export type Dose = z.output<typeof doseSchema>;

/**
 * The names a cue clip may have. `count-7` is spoken on the seventh repetition, `countdown-3` three seconds before
 * the first movement.
 */
export const cueName = z
  .string()
  .regex(
    /^(start|hold|rest|next-set|switch-side|last-rep|done|countdown-[1-3]|count-([1-9][0-9]?|100))$/,
    'expects start, hold, rest, next-set, switch-side, last-rep, done, countdown-1…3 or count-1…100',
  );

/** The repetition inside the source: it starts, turns and ends at these milliseconds after the first video frame. */
export const sourceRange = z
  .strictObject({
    sha256: sha256Hex,
    startMs: z.int().min(0),
    turnMs: z.int().min(0),
    endMs: z.int().min(0),
  })
  .refine((s) => s.startMs <= s.turnMs && s.turnMs <= s.endMs, { error: 'expects startMs ≤ turnMs ≤ endMs' })
  .refine((s) => s.endMs - s.startMs >= MIN_REP_MS && s.endMs - s.startMs <= MAX_REP_MS, {
    error: `expects a repetition of ${MIN_REP_MS} ms to ${MAX_REP_MS} ms`,
  });

/** A recipe, resolved: everything that decides what the video shows and says, and nothing else. */
export const recipeSchema = z.strictObject({
  version: z.literal(COMPOSER_VERSION),
  exerciseId: z.uuid(),
  language: languageTag,
  source: sourceRange,
  ...doseFields,
  clips: z.record(cueName, sha256Hex).default({}),
});
export type Recipe = z.output<typeof recipeSchema>;
export type RecipeInput = z.input<typeof recipeSchema>;

const ms = (value: number) => Math.round(value * 1000);

/** The tempo in milliseconds with "as filmed" replaced by what the film has. */
export function tempoMs(recipe: Pick<Recipe, 'tempo' | 'source'>) {
  const { tempo, source } = recipe;
  return {
    out: tempo.out === null ? source.turnMs - source.startMs : ms(tempo.out),
    hold: ms(tempo.hold ?? 0),
    back: tempo.back === null ? source.endMs - source.turnMs : ms(tempo.back),
    pause: ms(tempo.pause ?? 0),
  };
}

/**
 * The names of the clips a dose can make use of; a clip outside this set does not change the video, so it does not
 * belong into the recipe.
 */
export function usableCues(
  dose: Pick<Dose, 'sets' | 'reps' | 'sides' | 'cues' | 'leadInSeconds'>,
  holdMs: number,
): Set<string> {
  const names = new Set<string>();
  if (dose.cues !== 'voice') return names;
  for (const name of ['start', 'last-rep', 'done']) names.add(name);
  for (let rep = 1; rep <= dose.reps; rep++) names.add(`count-${rep}`);
  for (let left = 1; left <= Math.min(3, dose.leadInSeconds); left++) names.add(`countdown-${left}`);
  if (dose.sets > 1) for (const name of ['rest', 'next-set']) names.add(name);
  if (dose.sides === 'left-right') names.add('switch-side');
  if (holdMs > 0) names.add('hold');
  return names;
}

/** Reads a recipe, with defaults filled in, and brings it to its normal form. Throws where it is none. */
export const normaliseRecipe = (input: RecipeInput): Recipe => normalForm(recipeSchema.parse(input));

/**
 * The one form that all recipes of the same meaning share: phases given in full, and nothing kept that cannot be seen or
 * heard (the rest of a single set, clips that are never spoken). For what has been read by the schema already.
 */
export function normalForm(recipe: Recipe): Recipe {
  const tempo = tempoMs(recipe);
  const clips = Object.entries(recipe.clips);
  const usable = clips.length === 0 ? new Set() : usableCues(recipe, tempo.hold);
  return {
    ...recipe,
    tempo: { out: tempo.out / 1000, hold: tempo.hold / 1000, back: tempo.back / 1000, pause: tempo.pause / 1000 },
    restSeconds: recipe.sets > 1 ? recipe.restSeconds : 0,
    clips: Object.fromEntries(clips.filter(([name]) => usable.has(name))),
  };
}

/**
 * RFC 8785 canonical JSON of the normalised recipe, every length as an integer of milliseconds and the loudness in
 * tenths of LUFS, so that no spelling of a number can differ.
 */
export const canonicalRecipe = (input: RecipeInput): string => canonicalText(normaliseRecipe(input));

/**
 * `JSON.stringify` writes numbers and strings as RFC 8785 asks, and keys in the order in which they are put down: here in
 * that of the alphabet. A publish writes a thousand, and a library that sorts each object takes ten times as long.
 */
function canonicalText(recipe: Recipe): string {
  const { version, exerciseId, language, source, sets, reps, sides, cues, ...lengths } = recipe;
  const { tempo, restSeconds, leadInSeconds, loudness, clips, ...forgotten } = lengths;
  forgotten satisfies Record<keyof typeof forgotten, never>;
  return JSON.stringify({
    clips: Object.fromEntries(Object.entries(clips).sort(([a], [b]) => (a < b ? -1 : 1))),
    cues,
    exerciseId,
    language,
    leadInMs: ms(leadInSeconds),
    loudnessTenths: Math.round(loudness * 10),
    reps,
    restMs: ms(restSeconds),
    sets,
    sides,
    source: { endMs: source.endMs, sha256: source.sha256, startMs: source.startMs, turnMs: source.turnMs },
    tempoMs: {
      back: ms(tempo.back ?? 0),
      hold: ms(tempo.hold ?? 0),
      out: ms(tempo.out ?? 0),
      pause: ms(tempo.pause ?? 0),
    },
    version,
  });
}

/** SHA-256 of the canonical recipe: 64 lower-case hex digits. */
export const recipeHash = (input: RecipeInput): string => normalisedHash(normaliseRecipe(input));

/** The same of what is in its normal form already, which costs half: a publish makes a thousand. */
export const normalisedHash = (recipe: Recipe): string => hash('sha256', canonicalText(recipe));
