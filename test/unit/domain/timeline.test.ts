import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseRecipe } from '../../../lib/domain/recipe.ts';
import { buildTimeline, FPS, timelineFrames } from '../../../lib/domain/timeline.ts';
import { aRecipe, recipeInput } from '../../support/recipes.ts';

const timelineOf = (change: Parameters<typeof aRecipe>[0] = {}, facts = {}) =>
  buildTimeline(normaliseRecipe(aRecipe(change)), facts);

describe('timeline', () => {
  it('follows segment by segment without gap, for any recipe of allowed length, and ends where it was foretold', () => {
    fc.assert(
      fc.property(recipeInput, (input) => {
        const recipe = normaliseRecipe(input);
        const frames = timelineFrames(recipe);
        fc.pre(frames !== null);
        const timeline = buildTimeline(recipe);
        let next = 0;
        for (const segment of timeline.segments) {
          expect(segment.startFrame).toBe(next);
          expect(Number.isInteger(segment.frames) && segment.frames > 0).toBe(true);
          next += segment.frames;
        }
        expect(next).toBe(timeline.frames);
        expect(timeline.frames).toBe(frames);
        expect(timeline.frames).toBeLessThanOrEqual(3600 * FPS);
      }),
      { numRuns: 60 },
    );
  });

  it('keeps its cues in order, inside the video, and never two voices at once', () => {
    const clipMs = fc.dictionary(
      fc.constantFrom('start', 'rest', 'hold', 'done', 'count-1', 'count-2', 'last-rep', 'next-set'),
      fc.integer({ min: 100, max: 6000 }),
    );
    fc.assert(
      fc.property(recipeInput, clipMs, (input, lengths) => {
        const recipe = normaliseRecipe(input);
        fc.pre(timelineFrames(recipe) !== null);
        const { cues, frames } = buildTimeline(recipe, { clipMs: lengths });
        let last = 0;
        let busyUntil = 0;
        for (const cue of cues) {
          expect(cue.frame).toBeGreaterThanOrEqual(last);
          expect(cue.frame).toBeLessThan(frames);
          last = cue.frame;
        }
        for (const cue of cues.filter((c) => c.voiced)) {
          // A more important cue may cut in, and then the other is not voiced at all.
          expect(cue.frame).toBeGreaterThanOrEqual(busyUntil);
          busyUntil = cue.frame + Math.ceil(((lengths[cue.name] ?? 500) * FPS) / 1000);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('shows each repetition as often as prescribed, on each side', () => {
    for (const sides of ['none', 'left-right', 'alternating'] as const) {
      const { segments } = timelineOf({ sides, sets: 2, reps: 3 });
      const count = (side: string) => segments.filter((s) => s.kind === 'out' && s.side === side).length;
      expect([count('both'), count('left'), count('right')]).toEqual(sides === 'none' ? [6, 0, 0] : [0, 6, 6]);
    }
  });

  it('mirrors the right side and nothing else that moves', () => {
    const { segments } = timelineOf({ sides: 'alternating' });
    for (const segment of segments)
      if (segment.picture.type === 'clip') expect(segment.picture.mirrored).toBe(segment.side === 'right');
  });

  it('retimes the filmed phases and freezes the picture for hold and pause', () => {
    const { segments } = timelineOf({
      sets: 1,
      reps: 1,
      leadInSeconds: 0,
      tempo: { out: 3, hold: 2, back: 1, pause: 0.5 },
    });
    expect(segments.map((s) => [s.kind, s.frames, s.picture])).toEqual([
      ['out', 90, { type: 'clip', startMs: 0, endMs: 1500, mirrored: false }],
      ['hold', 60, { type: 'still', atMs: 1500, mirrored: false }],
      ['back', 30, { type: 'clip', startMs: 1500, endMs: 3000, mirrored: false }],
      ['pause', 15, { type: 'still', atMs: 3000, mirrored: false }],
      ['end', 60, { type: 'still', atMs: 3000, mirrored: false }],
    ]);
  });

  it('counts down before the first movement, counts the repetitions and speaks the language of the recipe', () => {
    const cues = timelineOf({ sets: 2, reps: 2, language: 'de' }).cues.map((cue) => [cue.name, cue.text]);
    expect(cues.filter(([name]) => name?.startsWith('countdown')).map(([, text]) => text)).toEqual(['3', '2', '1']);
    expect(cues.filter(([name]) => name === 'count-2')).toHaveLength(2);
    expect(cues).toContainEqual(['rest', 'Pause']);
    expect(cues.at(-1)).toEqual(['done', 'Geschafft']);
  });

  it('says nothing where no cues are wanted', () => {
    expect(timelineOf({ cues: 'none' }).cues).toEqual([]);
  });

  it('is refused where it would last longer than an hour', () => {
    expect(
      timelineFrames(
        normaliseRecipe(aRecipe({ sets: 20, reps: 100, tempo: { out: 60, hold: 0, back: 60, pause: 0 } })),
      ),
    ).toBeNull();
  });
});
