import { z } from 'zod';
import { type Recipe, sha256Hex } from '../domain/recipe.ts';
import { FPS, msOfFrame, type Timeline } from '../domain/timeline.ts';
import { baseline, warning } from './contract.ts';

const storedFile = z.object({ url: z.string(), sha256: sha256Hex, bytes: z.int() });
export type StoredFile = z.infer<typeof storedFile>;

/** The document beside a master that tells players and checkers everything about it. Written last. */
export const manifestSchema = z.object({
  version: z.literal(1),
  recipeHash: sha256Hex,
  exerciseId: z.string(),
  language: z.string(),
  fps: z.literal(FPS),
  frames: z.int(),
  durationMs: z.int(),
  master: storedFile.extend({ width: z.int(), height: z.int() }),
  baselines: z.array(baseline),
  poster: storedFile,
  captions: storedFile.nullable(),
  timeline: z.array(
    z.object({
      kind: z.string(),
      startMs: z.int(),
      endMs: z.int(),
      startFrame: z.int(),
      frames: z.int(),
      set: z.int(),
      rep: z.int(),
      side: z.string(),
    }),
  ),
  /** `offsetMs` is where the cue's first sample is heard; `voiced` false means that it is only shown. */
  cues: z.array(
    z.object({ name: z.string(), offsetMs: z.int(), frame: z.int(), text: z.string(), voiced: z.boolean() }),
  ),
  quality: z.object({
    /** Integrated loudness and true peak of what a player decodes; null for silence. */
    lufs: z.number().nullable(),
    truePeakDb: z.number().nullable(),
    targetLufs: z.number(),
    warnings: z.array(warning),
  }),
  /** SHA-256 of the toolchain that encoded it. */
  toolchain: sha256Hex,
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Puts a manifest together. The same bake gives the same document: it carries no clock and no name of a machine. */
export function buildManifest(input: {
  recipeHash: string;
  recipe: Recipe;
  timeline: Timeline;
  files: Pick<Manifest, 'master' | 'baselines' | 'poster' | 'captions'>;
  quality: Manifest['quality'];
  toolchain: string;
}): Manifest {
  const { recipe, timeline } = input;
  return {
    version: 1,
    recipeHash: input.recipeHash,
    exerciseId: recipe.exerciseId,
    language: recipe.language,
    fps: FPS,
    frames: timeline.frames,
    durationMs: msOfFrame(timeline.frames),
    ...input.files,
    timeline: timeline.segments.map(({ kind, startFrame, frames, set, rep, side }) => ({
      ...{ kind, startMs: msOfFrame(startFrame), endMs: msOfFrame(startFrame + frames) },
      ...{ startFrame, frames, set, rep, side },
    })),
    cues: timeline.cues.map(({ name, frame, text, voiced }) => ({
      ...{ name, offsetMs: msOfFrame(frame), frame, text, voiced },
    })),
    quality: input.quality,
    toolchain: input.toolchain,
  };
}
