import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseRecipe } from '../../../lib/domain/recipe.ts';
import { buildTimeline, FPS, timelineFrames } from '../../../lib/domain/timeline.ts';
import type { VideoFacts } from '../../../lib/ffmpeg/probe.ts';
import { concatList } from '../../../lib/media/picture.ts';
import { planUnits, type SourceFacts, STILL_UNIT_FRAMES, type Unit, unitKey } from '../../../lib/media/plan.ts';
import { fitInto, profilesOf, rungsFor } from '../../../lib/media/profiles.ts';
import { segmentArgs } from '../../../lib/media/segments.ts';
import { aRecipe, recipeInput } from '../../support/recipes.ts';

const video: VideoFacts = {
  ...{ index: 0, codec: 'h264', pixFmt: 'yuv420p', width: 1920, height: 1080, displayWidth: 1920, displayHeight: 1080 },
  ...{ sampleAspect: 1, rotation: 0, interlaced: false, averageRate: 25, range: 'tv', matrix: 'bt709' },
  ...{ transfer: 'bt709', primaries: 'bt709', encrypted: false },
};
/** A minute at 25 frames a second. */
const source: SourceFacts = {
  ...{ sha256: 'a'.repeat(64), video, firstMs: 0, durationMs: 60_000 },
  timesMs: Array.from({ length: 1500 }, (_, index) => index * 40),
};
const planOf = (change: Parameters<typeof aRecipe>[0]) =>
  planUnits(buildTimeline(normaliseRecipe(aRecipe(change))), source);

describe('the plan of a bake', () => {
  it('is exactly as long as the timeline, whatever the dose', () => {
    fc.assert(
      fc.property(recipeInput, (input) => {
        const recipe = normaliseRecipe(input);
        fc.pre(timelineFrames(recipe) !== null && recipe.source.endMs <= source.durationMs);
        const timeline = buildTimeline(recipe);
        const units = planUnits(timeline, source);
        expect(units.reduce((sum, { frames }) => sum + frames, 0)).toBe(timeline.frames);
        for (const { first, end, frames } of units) {
          expect(frames).toBeGreaterThan(0);
          expect(first).toBeGreaterThanOrEqual(0);
          expect(end).toBeGreaterThan(first);
          expect(end).toBeLessThanOrEqual(source.timesMs.length);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('holds every repetition once, however many there are', () => {
    const few = new Set(planOf({ reps: 2, sets: 2 }));
    const many = new Set(planOf({ reps: 90, sets: 2 }));
    expect(many.size).toBe(few.size);
  });

  it('makes a rest of any length from two seconds and a remainder', () => {
    const rest = (restSeconds: number) => new Set(planOf({ sets: 2, restSeconds, leadInSeconds: 0 })).size;
    expect(rest(600)).toBe(rest(2));
    const stills = planOf({ sets: 2, restSeconds: 45, leadInSeconds: 0 }).filter(({ end, first }) => end === first + 1);
    expect(Math.max(...stills.map(({ frames }) => frames))).toBe(STILL_UNIT_FRAMES);
  });

  it('takes the frame that is on display at the mark, not the next', () => {
    const sparse = { ...source, timesMs: [0, 1000, 2000, 3000], durationMs: 4000 };
    const marks = { sha256: 'a'.repeat(64), startMs: 500, turnMs: 1500, endMs: 2500 };
    const timeline = buildTimeline(normaliseRecipe(aRecipe({ source: marks, reps: 1, sets: 1, leadInSeconds: 0 })));
    const [out, back, end] = planUnits(timeline, sparse);
    expect(out).toMatchObject({ first: 0, end: 2, originMs: 500 });
    expect(back).toMatchObject({ first: 1, end: 3, originMs: 1500 });
    expect(end).toMatchObject({ first: 2, end: 3 });
  });

  it('forgives a mark set a moment behind the last frame, and no more', () => {
    const marks = (endMs: number) => ({ sha256: 'a'.repeat(64), startMs: 57_000, turnMs: 58_000, endMs });
    expect(planOf({ source: marks(60_100) }).length).toBeGreaterThan(0);
    expect(() => planOf({ source: marks(60_400) })).toThrow(/after the end of the source/);
  });
});

describe('the key of a segment', () => {
  it('changes with everything that changes its bytes', () => {
    const [unit] = planOf({}) as [Unit, ...Unit[]];
    const { master } = rungsFor(video);
    const key = (u: Partial<Unit>, s: Partial<SourceFacts> = {}, p = master, toolchain = 'x') =>
      unitKey({ ...unit, ...u }, p, { ...source, ...s }, toolchain);
    const keys = [
      ...[
        key({}),
        key({ frames: 7 }),
        key({ mirrored: true }),
        key({ first: 3 }),
        key({ stretch: 1.5 }),
        key({ originMs: 1 }),
      ],
      ...[key({}, { sha256: 'b'.repeat(64) }), key({}, { firstMs: 5 }), key({}, {}, { ...master, width: 640 })],
      key({}, {}, master, 'y'),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(key({})).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('the canvas', () => {
  it('follows the source: 720 lines where it has no more, upright where it is', () => {
    const master = (displayWidth: number, displayHeight: number) => rungsFor({ displayWidth, displayHeight }).master;
    expect(master(1920, 1080)).toMatchObject({ name: '1080p', width: 1920, height: 1080 });
    expect(master(2160, 3840)).toMatchObject({ name: '1080p', width: 1080, height: 1920 });
    expect(master(320, 180)).toMatchObject({ name: '720p', width: 1280, height: 720 });
    expect(master(480, 480)).toMatchObject({ name: '720p', width: 1280, height: 720 });
    expect(profilesOf(rungsFor({ displayWidth: 320, displayHeight: 180 })).map(({ name }) => name)).toEqual([
      '720p',
      '480p',
    ]);
  });

  it('holds the whole picture, undistorted, in even sizes', () => {
    const size = fc.integer({ min: 1, max: 8000 });
    fc.assert(
      fc.property(size, size, (displayWidth, displayHeight) => {
        const picture = { displayWidth, displayHeight };
        for (const canvas of profilesOf(rungsFor(picture))) {
          const { width, height } = fitInto(picture, canvas);
          expect([width % 2, height % 2]).toEqual([0, 0]);
          expect(width).toBeLessThanOrEqual(canvas.width);
          expect(height).toBeLessThanOrEqual(canvas.height);
          expect(Math.max(width / canvas.width, height / canvas.height)).toBeGreaterThan(0.99);
        }
      }),
    );
  });
});

describe('the list of a concatenation', () => {
  it('adds up to whole frames everywhere, to the microsecond', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 300 }), (lengths) => {
        const units = lengths.map((frames) => ({ first: 0, end: 1, originMs: 0, stretch: 1, frames, mirrored: false }));
        const list = concatList(
          units,
          units.map(() => '/unit.mp4'),
        );
        let micros = 0;
        let frames = 0;
        for (const [index, [, text = '']] of [...list.matchAll(/^duration (.*)$/gm)].entries()) {
          micros += Math.round(Number(text) * 1e6);
          frames += lengths[index] ?? 0;
          expect(Math.abs(micros - (frames * 1e6) / FPS)).toBeLessThanOrEqual(0.5);
        }
      }),
    );
  });
});

describe('the arguments of a segment', () => {
  it('pin everything that its bytes depend on', () => {
    const [unit] = planOf({}) as [Unit, ...Unit[]];
    const outputs = profilesOf(rungsFor(video)).map((profile) => ({ profile, path: `/job/${profile.name}.mp4` }));
    const args = segmentArgs('/job/source', source, unit, outputs);
    expect(args.filter((arg) => arg === '-i')).toHaveLength(1);
    for (const [flag, value] of [
      ['-bf', '0'],
      ['-sc_threshold', '0'],
      ['-video_track_timescale', '15360'],
      ['-g', '60'],
    ]) {
      expect(args.flatMap((arg, index) => (arg === flag ? [args[index + 1]] : []))).toEqual(
        Array(outputs.length).fill(value),
      );
    }
    // Once for the decoder, then once for each encoder.
    expect(args.flatMap((arg, index) => (arg === '-threads' ? [args[index + 1]] : []))).toEqual(['1', '1', '1', '1']);
  });
});
