import type { Recipe } from '../domain/recipe.ts';
import { buildTimeline, FPS, type Timeline } from '../domain/timeline.ts';
import { SAMPLE_RATE } from '../ffmpeg/decode.ts';
import { type Clip, loadClip } from './clips.ts';
import type { Warning } from './contract.ts';
import type { Placed } from './mixer.ts';
import { tone } from './tones.ts';

/** Samples a frame lasts. */
export const SAMPLES_PER_FRAME = SAMPLE_RATE / FPS;

/** Puts the sound of every voiced cue at its frame: clips by the cue's name, or tones. */
export function placeSounds(
  recipe: Pick<Recipe, 'cues'>,
  timeline: Timeline,
  clips: ReadonlyMap<string, Clip>,
): { sounds: Placed[]; warnings: Warning[] } {
  const total = timeline.frames * SAMPLES_PER_FRAME;
  const warnings: Warning[] = [];
  const sounds = timeline.cues
    .filter((cue) => cue.voiced)
    .flatMap((cue): Placed[] => {
      const at = cue.frame * SAMPLES_PER_FRAME;
      if (recipe.cues === 'beeps') {
        const samples = tone(cue.name);
        return [{ at, length: samples.length, load: async () => samples }];
      }
      const clip = clips.get(cue.name);
      return clip ? [{ at, length: clip.samples, load: () => loadClip(clip) }] : [];
    });
  if (recipe.cues === 'voice' && sounds.length === 0) {
    warnings.push({ code: 'no_voice', sentence: 'No voice clip fits this exercise, so the video is silent.' });
  }
  if (sounds.some(({ at, length }) => at + length > total)) {
    warnings.push({ code: 'cue_cut', sentence: 'The last voice clip is longer than what is left of the video.' });
  }
  return { sounds, warnings };
}

/** Lengths by cue name, as the timeline wants them to settle which of two cues is heard. */
export function soundLengths(
  recipe: Pick<Recipe, 'cues'>,
  clips: ReadonlyMap<string, Clip>,
  names: Iterable<string>,
): Record<string, number> {
  const ms = (samples: number) => (samples * 1000) / SAMPLE_RATE;
  return recipe.cues === 'beeps'
    ? Object.fromEntries([...names].map((name) => [name, ms(tone(name).length)]))
    : Object.fromEntries([...clips].map(([name, clip]) => [name, ms(clip.samples)]));
}

/** The recipe's timeline with its voices settled by the lengths of its sounds. */
export function soundedTimeline(recipe: Recipe, clips: ReadonlyMap<string, Clip>): Timeline {
  const names = buildTimeline(recipe).cues.map(({ name }) => name);
  return buildTimeline(recipe, { clipMs: soundLengths(recipe, clips, names) });
}
