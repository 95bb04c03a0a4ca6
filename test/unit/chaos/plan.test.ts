import { describe, expect, it } from 'vitest';
import { EXERCISES, loadOf, ORGS, PLATFORM_EXERCISES, SPECIALISTS } from '../../chaos/load.ts';
import { scriptOf } from '../../chaos/script.ts';

describe('a chaos script', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(scriptOf(7, 3)).toEqual(scriptOf(7, 3));
    expect(scriptOf(7, 3)).not.toEqual(scriptOf(8, 3));
  });

  it('has taken back everything that lasts before its time is over', () => {
    for (let seed = 0; seed < 50; seed++) {
      for (const action of scriptOf(seed, 3)) {
        expect(action.atMs + ('forMs' in action ? action.forMs : 0)).toBeLessThanOrEqual(3 * 60_000);
      }
    }
  });

  it('plays everything that it knows in three minutes', () => {
    const names = new Set(scriptOf(1, 3).map((action) => (action.kind === 'bunny' ? action.what : action.kind)));
    expect(names).toEqual(
      new Set([
        ...['kill', 'wedge', 'flush', 'redis-kill', 'redis-down', 'redis-hang', 'postgres-restart', 'less-media'],
        ...['disk-full', 'webhooks.off', 'webhooks.lost', 'webhooks.doubled', 'webhooks.reordered', 'webhooks.early'],
        ...['webhooks.forged', 'webhooks.late', 'rate5xx', 'rate429', 'acceptThenTimeout.create'],
        ...['acceptThenTimeout.upload', 'searchRefused', 'eventualListing', 'missingVideo', 'truncatedFinish'],
      ]),
    );
  });
});

describe('a chaos load', () => {
  const load = loadOf(3, 3, 60);

  it('is the same for the same seed, and publishes as many different recipes as it is told to', () => {
    expect(loadOf(3, 3, 60)).toEqual(load);
    expect(new Set(load.recipes.map((recipe) => JSON.stringify(recipe))).size).toBe(60);
    const published = load.steps.flatMap((step) => (step.kind === 'publish' ? step.recipes : []));
    expect(new Set(published)).toEqual(new Set(load.recipes.keys()));
  });

  it('lets nobody publish what belongs to another clinic', () => {
    const owner = (exercise: number) => (exercise < PLATFORM_EXERCISES ? null : ORGS[exercise - PLATFORM_EXERCISES]);
    for (let seed = 0; seed < 50; seed++) {
      const { steps, recipes } = loadOf(seed, 3, 60);
      for (const step of steps) {
        if (step.kind !== 'publish') continue;
        for (const by of [step.by, ...(step.twin ? [step.twin.by] : [])]) {
          for (const index of step.recipes) {
            const exercise = recipes[index]!.exercise;
            expect(exercise).toBeLessThan(EXERCISES);
            expect([null, SPECIALISTS[by]!.org]).toContain(owner(exercise));
          }
        }
      }
    }
  });

  it('ends after two thirds of the time, and has batches, singles, twins, repeats and assignments in it', () => {
    expect(Math.max(...load.steps.map((step) => step.atMs))).toBeLessThanOrEqual(2.2 * 60_000);
    const kinds = Array.from({ length: 10 }, (_, seed) => loadOf(seed, 3, 60).steps).flat();
    expect(kinds.some((step) => step.kind === 'publish' && step.recipes.length === 1)).toBe(true);
    expect(kinds.some((step) => step.kind === 'publish' && step.recipes.length >= 5)).toBe(true);
    expect(kinds.some((step) => step.kind === 'publish' && step.twin !== undefined)).toBe(true);
    expect(kinds.some((step) => step.kind === 'publish-again')).toBe(true);
    expect(kinds.some((step) => step.kind === 'assign')).toBe(true);
  });
});
