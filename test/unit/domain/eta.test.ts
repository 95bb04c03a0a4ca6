import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Estimate,
  estimate,
  type Pace,
  stepOf,
  type Told,
  tell,
  type Unfinished,
} from '../../../lib/domain/eta.ts';

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

describe('what is told of an estimate', () => {
  const NOW = Date.parse('2026-03-14T09:00:00Z');
  const away = fc.oneof(fc.nat(200_000), fc.nat(3 * 3_600_000));
  const anEstimate: fc.Arbitrary<Estimate> = fc
    .tuple(away, fc.nat(600_000))
    .map(([likelyMs, more]) => ({ likelyMs, latestMs: likelyMs + more }));
  const told: fc.Arbitrary<Told | null> = fc.oneof(
    fc.constant(null),
    fc.record({ likely: fc.nat(4 * 3_600_000), latest: fc.nat(4 * 3_600_000) }).map(({ likely, latest }) => ({
      ...{ likely: NOW - 600_000 + likely, latest: NOW - 600_000 + latest },
    })),
  );

  it('is rounded up to steps that are coarser the further away it is', () => {
    const at = (text: string) => Date.parse(`2026-03-14T${text}Z`);
    const minutes = (likely: number, latest: number) => ({ likelyMs: likely * 60_000, latestMs: latest * 60_000 });
    expect(tell(minutes(0.91, 1.2), NOW, null)).toEqual({ likely: at('09:01:00'), latest: at('09:01:20') });
    expect(tell(minutes(3.1, 17.5), NOW, null)).toEqual({ likely: at('09:03:30'), latest: at('09:18:00') });
    expect(tell(minutes(100, 201), NOW, null)).toEqual({ likely: at('10:40:00'), latest: at('12:30:00') });
  });

  it('is never in the past, likely before latest, and within one and a half steps, whatever was told last', () => {
    fc.assert(
      fc.property(anEstimate, told, (one, last) => {
        const { likely, latest } = tell(one, NOW, last);
        expect(likely).toBeGreaterThanOrEqual(NOW);
        expect(latest).toBeGreaterThanOrEqual(likely);
        expect(Math.abs(likely - NOW - one.likelyMs)).toBeLessThanOrEqual(1.5 * stepOf(one.likelyMs));
      }),
    );
  });

  it('stays what it is while estimates wobble by less than half a step, and as time goes by towards it', () => {
    const looks = fc.array(fc.record({ afterMs: fc.nat(5_000), wobble: fc.double({ min: -1, max: 1, noNaN: true }) }));
    fc.assert(
      fc.property(fc.integer({ min: 20_000, max: 3 * 3_600_000 }), looks, (first, all) => {
        const dueAt = NOW + first;
        const before = tell({ likelyMs: first, latestMs: first }, NOW, null);
        let now = NOW;
        for (const { afterMs, wobble } of all) {
          now += afterMs;
          // Where it comes so near that finer steps begin, it may be told anew.
          const likelyMs = dueAt + wobble * 0.49 * stepOf(first) - now;
          if (likelyMs < 0 || now >= before.likely || stepOf(likelyMs) !== stepOf(first)) break;
          expect(tell({ likelyMs, latestMs: likelyMs }, now, before)).toEqual(before);
        }
      }),
    );
  });

  it('changes once at most while they wobble by less than half a step where steps meet or times are rounded', () => {
    const wobbles = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { maxLength: 50 });
    fc.assert(
      fc.property(fc.integer({ min: 20_000, max: 3 * 3_600_000 }), wobbles, (around, all) => {
        const half = Math.min(...[0.9, 1.1].map((factor) => stepOf(around * factor))) / 2;
        const answers: Told[] = [];
        for (const wobble of all) {
          const likelyMs = around + (wobble * half) / 2;
          answers.push(tell({ likelyMs, latestMs: likelyMs }, NOW, answers.at(-1) ?? null));
        }
        const changes = answers.filter((each, at) => at > 0 && each.likely !== answers[at - 1]?.likely).length;
        expect(changes).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('is told anew where it differs by more than two steps', () => {
    fc.assert(
      fc.property(anEstimate, fc.boolean(), (one, later) => {
        const exact = { likely: NOW + one.likelyMs, latest: NOW + one.latestMs };
        const off = 2 * stepOf(one.likelyMs) * (later ? 1 : -1);
        const last = { likely: exact.likely + off, latest: exact.latest };
        expect(tell(one, NOW, last).likely).not.toBe(last.likely);
      }),
    );
  });
});
