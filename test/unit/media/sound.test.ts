import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseRecipe } from '../../../lib/domain/recipe.ts';
import { buildTimeline } from '../../../lib/domain/timeline.ts';
import { mixBed, type Placed } from '../../../lib/media/mixer.ts';
import { placeSounds, SAMPLES_PER_FRAME, soundLengths } from '../../../lib/media/sounds.ts';
import { tone } from '../../../lib/media/tones.ts';
import { aRecipe } from '../../support/recipes.ts';

async function mixed(sounds: Placed[], total: number): Promise<Float32Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of mixBed(sounds, total)) chunks.push(chunk);
  return new Float32Array(new Uint8Array(Buffer.concat(chunks)).buffer);
}
const placed = (at: number, samples: Float32Array): Placed => ({
  at,
  length: samples.length,
  load: async () => samples,
});

describe('the sound bed', () => {
  it('has exactly the samples asked for, each the sum of what is heard there', async () => {
    const sound = fc.record({
      at: fc.integer({ min: 0, max: 120_000 }),
      samples: fc.float32Array({ minLength: 1, maxLength: 400, min: -0.5, max: 0.5, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(sound, { maxLength: 8 }), async (sounds) => {
        const total = 150_000;
        const expected = new Float32Array(total);
        for (const { at, samples } of [...sounds].sort((a, b) => a.at - b.at)) {
          for (const [index, sample] of samples.entries()) expected[at + index] = (expected[at + index] ?? 0) + sample;
        }
        const bed = await mixed(
          sounds.map(({ at, samples }) => placed(at, samples)),
          total,
        );
        expect(bed.length).toBe(total);
        expect(Buffer.from(bed.buffer).equals(Buffer.from(expected.buffer))).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it('loads a sound only when it is due, and holds one chunk of an hour at a time', async () => {
    const order: string[] = [];
    const samples = new Float32Array(10);
    const sounds = [0, 1000, 3599].map((second) => ({
      ...{ at: second * 48_000, length: 10 },
      load: async () => {
        order.push(`load ${second}`);
        return samples;
      },
    }));
    let chunks = 0;
    for await (const chunk of mixBed(sounds, 3600 * 48_000)) {
      chunks += 1;
      expect(chunk.byteLength).toBeLessThanOrEqual(48_000 * 4);
      if (chunks === 1) order.push('first chunk');
    }
    expect(chunks).toBe(3600);
    expect(order).toEqual(['load 0', 'first chunk', 'load 1000', 'load 3599']);
  });

  it('fades out what its end cuts off', async () => {
    const bed = await mixed([placed(1000, new Float32Array(10_000).fill(1))], 5000);
    expect(bed[1500]).toBe(1);
    expect(bed[4999]).toBeLessThan(0.01);
  });
});

describe('the sounds of a timeline', () => {
  it('lie at the first sample of their frame, and only where a cue is voiced', () => {
    const recipe = normaliseRecipe(aRecipe({ cues: 'beeps' }));
    const draft = buildTimeline(recipe);
    const clipMs = soundLengths(recipe, new Map(), new Set(draft.cues.map(({ name }) => name)));
    const timeline = buildTimeline(recipe, { clipMs });
    const { sounds, warnings } = placeSounds(recipe, timeline, new Map());
    expect(warnings).toEqual([]);
    expect(sounds.map(({ at }) => at / SAMPLES_PER_FRAME)).toEqual(
      timeline.cues.filter(({ voiced }) => voiced).map(({ frame }) => frame),
    );
  });

  it('are clips by name; a voice without clips is worth a warning, and so is a last word that is cut', () => {
    const sha256 = 'b'.repeat(64);
    const recipe = normaliseRecipe(aRecipe({ cues: 'voice', clips: { done: sha256 } }));
    const timeline = buildTimeline(recipe);
    expect(placeSounds(recipe, timeline, new Map()).warnings.map(({ code }) => code)).toEqual(['no_voice']);
    const long = new Map([['done', { path: '/clip', samples: 48_000 * 5 }]]);
    const { sounds, warnings } = placeSounds(recipe, timeline, long);
    expect(sounds).toHaveLength(1);
    expect(warnings.map(({ code }) => code)).toEqual(['cue_cut']);
    expect(soundLengths(recipe, long, [])).toEqual({ done: 5000 });
  });
});

describe('a tone', () => {
  it('is the same each time, starts and ends without a click, and tells the cues apart', () => {
    const names = ['start', 'hold', 'rest', 'switch-side', 'last-rep', 'done', 'count-1', 'countdown-3'];
    const bytes = names.map((name) => Buffer.from(tone(name).buffer).toString('base64'));
    expect(new Set(bytes).size).toBe(names.length);
    for (const name of names) {
      const samples = tone(name);
      expect(samples).toEqual(tone(name));
      expect(Math.abs(samples[0] ?? 1)).toBeLessThan(0.01);
      expect(Math.abs(samples.at(-1) ?? 1)).toBeLessThan(0.01);
    }
    expect(tone('done').length).toBe(Math.max(...names.map((name) => tone(name).length)));
  });
});
