import { cueText } from './cue-text.ts';
import { MAX_DURATION_MS, type Recipe, tempoMs } from './recipe.ts';

/** Frames are the clock of every video: constant rate, whole frames, so that offsets are exact by construction. */
export const FPS = 30;

/** How long the picture stands while the side is changed, and after the last repetition. */
export const SIDE_CHANGE_MS = 4000;
export const END_MS = 2000;

export type SegmentKind = 'lead-in' | 'out' | 'hold' | 'back' | 'pause' | 'rest' | 'side-change' | 'end';

/** Where the picture comes from: a stretch of film retimed to the segment's frames, or one frame held. */
export type Picture =
  | { type: 'clip'; startMs: number; endMs: number; mirrored: boolean }
  | { type: 'still'; atMs: number; mirrored: boolean };

export type Side = 'both' | 'left' | 'right';

export interface Segment {
  kind: SegmentKind;
  startFrame: number;
  frames: number;
  /** Counted from 1; 0 outside a set or a repetition. */
  set: number;
  rep: number;
  side: Side;
  picture: Picture;
}

export interface Cue {
  /** The clip or tone to play, named as in `cueName`. */
  name: string;
  frame: number;
  /** The words, in the recipe's language, for captions. */
  text: string;
  /** False where a more important cue is still being spoken: shown as a caption only. */
  voiced: boolean;
}

export interface Timeline {
  fps: typeof FPS;
  frames: number;
  segments: Segment[];
  cues: Cue[];
}

/** What is known about the assets; clips without a known length count as half a second. */
export interface TimelineFacts {
  clipMs?: Readonly<Record<string, number>>;
}

const DEFAULT_CLIP_MS = 500;

/** The nearest whole frame; a length that is not zero is never rounded away. */
export const framesOf = (milliseconds: number) =>
  milliseconds <= 0 ? 0 : Math.max(1, Math.round((milliseconds * FPS) / 1000));

export const msOfFrame = (frame: number) => Math.round((frame * 1000) / FPS);

/** How much each cue matters when two would be spoken at once: the higher one is heard. */
const PRIORITY: Record<string, number> = {
  done: 9,
  'switch-side': 8,
  rest: 7,
  start: 6,
  'next-set': 5,
  'last-rep': 4,
  hold: 2,
};
const priorityOf = (name: string) => PRIORITY[name] ?? (name.startsWith('countdown-') ? 3 : 1);

/** Frames of the whole video; null where it would be longer than allowed or shorter than one frame. */
export function timelineFrames(recipe: Recipe): number | null {
  const { rep, reps, sides } = shape(recipe);
  const sideChange = recipe.sides === 'left-right' ? framesOf(SIDE_CHANGE_MS) : 0;
  const frames =
    framesOf(recipe.leadInSeconds * 1000) +
    recipe.sets * (sides * reps * rep + sideChange) +
    (recipe.sets - 1) * framesOf(recipe.restSeconds * 1000) +
    framesOf(END_MS);
  return rep === 0 || frames > (MAX_DURATION_MS * FPS) / 1000 ? null : frames;
}

function shape(recipe: Recipe) {
  const tempo = tempoMs(recipe);
  const rep = framesOf(tempo.out) + framesOf(tempo.hold) + framesOf(tempo.back) + framesOf(tempo.pause);
  return { tempo, rep, reps: recipe.reps, sides: recipe.sides === 'none' ? 1 : 2 };
}

/**
 * Lays a recipe out as segments that follow each other without gap and the cues on them.
 *
 * In `left-right` every set is done on the left, then, mirrored, on the right; in `alternating` the side changes with
 * every repetition. In both, `reps` counts each side. Pure: the same recipe and facts give the same timeline.
 */
export function buildTimeline(recipe: Recipe, facts: TimelineFacts = {}): Timeline {
  const { tempo } = shape(recipe);
  const { source } = recipe;
  const segments: Segment[] = [];
  const wanted: { name: string; frame: number; value?: number }[] = [];
  let frame = 0;

  const add = (kind: SegmentKind, length: number, at: { set: number; rep: number; side: Side }, picture: Picture) => {
    const frames = framesOf(length);
    if (frames > 0) segments.push({ kind, startFrame: frame, frames, ...at, picture });
    frame += frames;
  };
  const still = (atMs: number, mirrored = false): Picture => ({ type: 'still', atMs, mirrored });
  const film = (startMs: number, endMs: number, mirrored: boolean): Picture =>
    endMs > startMs ? { type: 'clip', startMs, endMs, mirrored } : still(startMs, mirrored);
  const say = (name: string, atFrame = frame) => wanted.push({ name, frame: atFrame });

  const repetition = (set: number, rep: number, side: Side, last: boolean) => {
    const mirrored = side === 'right';
    const at = { set, rep, side };
    say(`count-${rep}`);
    if (last && recipe.reps > 1) say('last-rep');
    add('out', tempo.out, at, film(source.startMs, source.turnMs, mirrored));
    if (framesOf(tempo.hold) > 0) say('hold');
    add('hold', tempo.hold, at, still(source.turnMs, mirrored));
    add('back', tempo.back, at, film(source.turnMs, source.endMs, mirrored));
    add('pause', tempo.pause, at, still(source.endMs, mirrored));
  };

  const leadIn = framesOf(recipe.leadInSeconds * 1000);
  add('lead-in', recipe.leadInSeconds * 1000, { set: 0, rep: 0, side: 'both' }, still(source.startMs));
  for (let left = 3; left >= 1; left--) if (leadIn >= left * FPS) say(`countdown-${left}`, leadIn - left * FPS);

  for (let set = 1; set <= recipe.sets; set++) {
    say(set === 1 ? 'start' : 'next-set');
    if (recipe.sides === 'alternating') {
      for (let rep = 1; rep <= recipe.reps; rep++) {
        repetition(set, rep, 'left', false);
        repetition(set, rep, 'right', rep === recipe.reps);
      }
    } else {
      const sides: Side[] = recipe.sides === 'none' ? ['both'] : ['left', 'right'];
      for (const side of sides) {
        if (side === 'right') {
          say('switch-side');
          add('side-change', SIDE_CHANGE_MS, { set, rep: 0, side }, still(source.startMs, true));
        }
        for (let rep = 1; rep <= recipe.reps; rep++) repetition(set, rep, side, rep === recipe.reps);
      }
    }
    if (set < recipe.sets) {
      if (framesOf(recipe.restSeconds * 1000) > 0) say('rest');
      add('rest', recipe.restSeconds * 1000, { set, rep: 0, side: 'both' }, still(source.startMs));
    }
  }
  say('done');
  add('end', END_MS, { set: 0, rep: 0, side: 'both' }, still(source.endMs, recipe.sides !== 'none'));

  const cues =
    recipe.cues === 'none'
      ? []
      : settleVoices(wanted, facts).map((cue) => ({ ...cue, text: cueText(recipe, cue.name) }));
  return { fps: FPS, frames: frame, segments, cues };
}

/** Orders the cues and decides which of two overlapping ones is heard: the more important, else the earlier. */
function settleVoices(wanted: readonly { name: string; frame: number }[], facts: TimelineFacts) {
  const lengthOf = (name: string) => Math.ceil(((facts.clipMs?.[name] ?? DEFAULT_CLIP_MS) * FPS) / 1000);
  const cues = wanted
    .map((cue, order) => ({ ...cue, order }))
    .sort((a, b) => a.frame - b.frame || priorityOf(b.name) - priorityOf(a.name) || a.order - b.order)
    .map(({ name, frame }) => ({ name, frame, voiced: true }));
  let speaking: (typeof cues)[number] | undefined;
  for (const cue of cues) {
    const busyUntil = speaking ? speaking.frame + lengthOf(speaking.name) : 0;
    if (!speaking || cue.frame >= busyUntil) {
      speaking = cue;
    } else if (priorityOf(cue.name) > priorityOf(speaking.name)) {
      speaking.voiced = false;
      speaking = cue;
    } else {
      cue.voiced = false;
    }
  }
  return cues;
}
