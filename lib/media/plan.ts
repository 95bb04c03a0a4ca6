import { createHash } from 'node:crypto';
import { FPS, type Picture, type Timeline } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import type { VideoFacts } from '../ffmpeg/probe.ts';
import type { Profile } from './profiles.ts';

/** A source as the bake needs to know it: what its headers say of the picture, and when each frame really is shown. */
export interface SourceFacts {
  sha256: string;
  video: VideoFacts;
  /** First frame on the container's clock, in milliseconds. */
  firstMs: number;
  /** When each decoded frame is shown, in milliseconds after the first, never falling. */
  timesMs: number[];
  durationMs: number;
}

/**
 * One distinct piece of picture, encoded once for each profile: source frames `first` to `end` (exclusive), shown from
 * `originMs` on at `stretch` times their length, for exactly `frames` frames of output.
 */
export interface Unit {
  first: number;
  end: number;
  originMs: number;
  stretch: number;
  frames: number;
  mirrored: boolean;
}

/** A still picture is made of repetitions of this, so that a rest of any length costs two seconds of encoding. */
export const STILL_UNIT_FRAMES = 2 * FPS;

/**
 * Turns the timeline into the units it is made of, in order; equal pieces are the same object. Throws
 * `source_too_short` where the recipe points behind the end of the film.
 */
export function planUnits(timeline: Timeline, source: SourceFacts): Unit[] {
  const units = new Map<string, Unit>();
  const once = (unit: Unit): Unit => {
    const key = JSON.stringify(unit);
    const known = units.get(key);
    if (!known) units.set(key, unit);
    return known ?? unit;
  };
  return timeline.segments.flatMap((segment) => pieces(segment.picture, segment.frames, source).map(once));
}

function pieces(picture: Picture, frames: number, source: SourceFacts): Unit[] {
  if (picture.type === 'clip') return [clip(picture, frames, source)];
  assertWithin(picture.atMs, source);
  const first = frameAt(source.timesMs, picture.atMs);
  const still = (length: number): Unit => ({
    ...{ first, end: first + 1, originMs: source.timesMs[first] ?? 0, stretch: 1 },
    ...{ frames: length, mirrored: picture.mirrored },
  });
  const whole = Math.floor(frames / STILL_UNIT_FRAMES);
  const rest = frames % STILL_UNIT_FRAMES;
  return [...Array.from({ length: whole }, () => still(STILL_UNIT_FRAMES)), ...(rest > 0 ? [still(rest)] : [])];
}

function clip(picture: Extract<Picture, { type: 'clip' }>, frames: number, source: SourceFacts): Unit {
  assertWithin(picture.endMs, source);
  const first = frameAt(source.timesMs, picture.startMs);
  const behind = source.timesMs.findIndex((time) => time >= picture.endMs);
  return {
    first,
    end: Math.max(first + 1, behind < 0 ? source.timesMs.length : behind),
    originMs: picture.startMs,
    stretch: ((frames / FPS) * 1000) / (picture.endMs - picture.startMs),
    frames,
    mirrored: picture.mirrored,
  };
}

/** The frame on display at a time: the last one whose time has come. */
function frameAt(timesMs: readonly number[], atMs: number): number {
  const behind = timesMs.findIndex((time) => time > atMs);
  return behind < 0 ? timesMs.length - 1 : Math.max(0, behind - 1);
}

/** Marks are set by eye in a player whose last frame may end a little later than ours. */
const MARK_TOLERANCE_MS = 150;

function assertWithin(atMs: number, source: SourceFacts): void {
  if (atMs <= source.durationMs + MARK_TOLERANCE_MS) return;
  throw new AppError('source_too_short', {
    sentence: 'The marked repetition ends after the end of the source video.',
    detail: `marked up to ${atMs} ms, decoded ${source.durationMs} ms`,
  });
}

/** Everything that decides the bytes of a unit in a profile; raise `SCHEME` when the filter graph or the flags change. */
const SCHEME = 1;

/** The content address of a unit's encoding. */
export function unitKey(unit: Unit, profile: Profile, source: SourceFacts, fingerprint: string): string {
  const { index, displayWidth, displayHeight, interlaced, matrix } = source.video;
  return createHash('sha256')
    .update(
      JSON.stringify([
        ...['segment', SCHEME, fingerprint, source.sha256],
        ...[unit.first, unit.end, unit.originMs, unit.stretch, unit.frames, unit.mirrored],
        ...[source.firstMs, index, displayWidth, displayHeight, interlaced, matrix],
        ...[profile.width, profile.height, profile.level, profile.maxRate],
      ]),
    )
    .digest('hex');
}
