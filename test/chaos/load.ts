import type { NewItem } from '../../lib/client/client.ts';
import { randomOf } from './random.ts';

/** Who publishes: two clinics, of each two specialists with much to do and one with a single exercise now and then. */
export const SPECIALISTS = [
  { name: 'ana', org: 0, publishes: 'batches' },
  { name: 'ben', org: 0, publishes: 'batches' },
  { name: 'cleo', org: 1, publishes: 'batches' },
  { name: 'dan', org: 1, publishes: 'batches' },
  { name: 'eva', org: 0, publishes: 'singles' },
  { name: 'finn', org: 1, publishes: 'singles' },
] as const;
export const ORGS = [0, 1] as const;

/** Exercises by number: the first are the platform's, then comes one of each clinic. */
export const PLATFORM_EXERCISES = 2;
export const EXERCISES = PLATFORM_EXERCISES + ORGS.length;

type Dose = NonNullable<NewItem['dose']>;

/** A recipe of the plan: an exercise by number, and a dose that no other recipe has. */
export interface PlannedRecipe {
  exercise: number;
  dose: Dose;
}

export type Step =
  /** A programme of these recipes. `twin`: another specialist publishes the same ones at the same moment. */
  | { kind: 'publish'; program: number; by: number; recipes: number[]; twin?: { program: number; by: number } }
  | { kind: 'publish-again'; program: number; by: number }
  | { kind: 'assign'; program: number; by: number };

export type TimedStep = Step & { atMs: number };

export interface Load {
  recipes: PlannedRecipe[];
  steps: TimedStep[];
}

const LARGEST_BATCH = 15;
const SMALLEST_BATCH = 5;

/**
 * What the clinics do in a run: `renders` different recipes, published in batches and alone, in the first two thirds of
 * the time. Behind a batch come other specialists' single ones, which must not wait for all of it. A pure function of
 * its arguments.
 */
export function loadOf(seed: number, minutes: number, renders: number): Load {
  const random = randomOf(seed ^ 0x10ad);
  const recipes: PlannedRecipe[] = [];
  const steps: Step[] = [];
  let programs = 0;

  const recipesFor = (by: number, count: number, platformOnly: boolean) =>
    Array.from({ length: count }, () => {
      const own = PLATFORM_EXERCISES + (SPECIALISTS[by]?.org ?? 0);
      const exercise = !platformOnly && random.next() < 0.3 ? own : random.int(0, PLATFORM_EXERCISES - 1);
      return recipes.push({ exercise, dose: doseOf(recipes.length) }) - 1;
    });
  const somebody = (publishes: 'batches' | 'singles', but?: number) =>
    random.pick(
      [...SPECIALISTS.keys()].filter((index) => SPECIALISTS[index]?.publishes === publishes && index !== but),
    );
  const left = () => renders - recipes.length;
  const publish = (by: number, count: number, twinBy?: number) => {
    const program = programs++;
    const own = recipesFor(by, count, twinBy !== undefined);
    const twin = twinBy === undefined ? {} : { twin: { program: programs++, by: twinBy } };
    steps.push({ kind: 'publish', program, by, recipes: own, ...twin });
    if (random.next() < 0.3) steps.push({ kind: 'assign', program, by });
  };

  while (left() > 0) {
    const by = somebody('batches');
    const size = Math.min(left(), random.int(SMALLEST_BATCH, LARGEST_BATCH));
    publish(by, size, random.next() < 0.3 ? somebody('batches', by) : undefined);
    for (let singles = random.int(1, 3); singles > 0 && left() > 0; singles--) publish(somebody('singles'), 1);
    // What is published already costs nothing, alone or beside something new.
    const earlier = random.pick(steps.filter((step) => step.kind === 'publish'));
    steps.push({ kind: 'publish-again', program: earlier.program, by: earlier.by });
  }
  return { recipes, steps: spread(steps, (minutes * 60_000 * 2) / 3, random.next) };
}

/** In bursts: what follows a batch comes while it still waits. */
function spread(steps: readonly Step[], withinMs: number, chance: () => number): TimedStep[] {
  const bursts = steps.filter((step) => step.kind === 'publish' && step.recipes.length > 1).length;
  let burst = -1;
  let atMs = 0;
  return steps.map((step) => {
    if (step.kind === 'publish' && step.recipes.length > 1) {
      burst += 1;
      atMs = Math.round((withinMs * (burst + chance() / 2)) / Math.max(1, bursts));
    } else {
      atMs += Math.round(100 + 900 * chance());
    }
    return { ...step, atMs };
  });
}

/**
 * A dose for the cheapest bakes there are. The loudness alone makes recipes differ in two hundred ways; as the picture
 * is then the same, the segments are shared and a bake is mostly sound.
 */
const doseOf = (index: number): Dose => ({
  sets: 1,
  reps: 1 + (index % 2),
  leadInSeconds: index % 3 === 0 ? 1 : 0,
  cues: 'beeps',
  loudness: -10 - (index % 200) / 10,
});
