import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { estimate, type Pace, type Unfinished } from '../../../lib/domain/eta.ts';

const stage = fc
  .tuple(fc.nat(60_000), fc.nat(60_000))
  .map(([p50, more]) => ({ p50, p90: p50 + more, mean: p50 + more / 3 }));
const pace: fc.Arbitrary<Pace> = fc.record({ bake: stage, transcode: stage, slots: fc.integer({ min: 1, max: 20 }) });
const unfinished: fc.Arbitrary<Unfinished> = fc.record({
  status: fc.constantFrom('pending', 'rendering', 'transcoding'),
  sinceMs: fc.nat(200_000),
  ahead: fc.nat(500),
  waitMs: fc.nat(600_000),
});

const PACE: Pace = {
  bake: { mean: 12_000, p50: 10_000, p90: 20_000 },
  transcode: { mean: 31_000, p50: 30_000, p90: 60_000 },
  slots: 2,
};
const render = (change: Partial<Unfinished>): Unfinished => ({
  ...{ status: 'pending', sinceMs: 0, ahead: 0, waitMs: 0 },
  ...change,
});

describe('an estimate', () => {
  it('adds up the stages that are still before a render, and the bakes before it in each slot', () => {
    expect(estimate([render({})], PACE)).toEqual({ likelyMs: 40_000, latestMs: 80_000 });
    expect(estimate([render({ ahead: 4 })], PACE)).toEqual({ likelyMs: 64_000, latestMs: 104_000 });
    expect(estimate([render({ waitMs: 100_000 })], PACE)).toEqual({ likelyMs: 140_000, latestMs: 180_000 });
    expect(estimate([render({ status: 'rendering', sinceMs: 4_000 })], PACE).likelyMs).toBe(36_000);
    expect(estimate([render({ status: 'transcoding', sinceMs: 45_000 })], PACE)).toEqual({
      ...{ likelyMs: 1_000, latestMs: 15_000 },
    });
  });

  it('is that of the last to be ready, never in the past, and likely before latest', () => {
    fc.assert(
      fc.property(fc.array(unfinished, { minLength: 1, maxLength: 20 }), pace, (renders, given) => {
        const all = estimate(renders, given);
        expect(all.likelyMs).toBe(Math.max(...renders.map((each) => estimate([each], given).likelyMs)));
        expect(all.likelyMs).toBeGreaterThanOrEqual(0);
        expect(all.latestMs).toBeGreaterThanOrEqual(all.likelyMs);
      }),
    );
  });

  it('never gets later by more slots, nor earlier by more before it', () => {
    fc.assert(
      fc.property(unfinished, pace, fc.nat(20), (one, given, more) => {
        const now = estimate([one], given).likelyMs;
        expect(estimate([one], { ...given, slots: given.slots + more }).likelyMs).toBeLessThanOrEqual(now);
        expect(estimate([{ ...one, ahead: one.ahead + more }], given).likelyMs).toBeGreaterThanOrEqual(now);
      }),
    );
  });
});
