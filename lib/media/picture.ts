import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FPS } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import { BITEXACT_ARGS, concatInputArgs, concatLine, inputArgs, OWN_FORMATS } from '../ffmpeg/argv.ts';
import type { DiskCache, Make } from './disk-cache.ts';
import { type SourceFacts, type Unit, unitKey } from './plan.ts';
import type { Profile } from './profiles.ts';
import { segmentArgs, TIMESCALE } from './segments.ts';
import { together } from './together.ts';
import { encode, type Tools } from './tools.ts';
import { checkCopied, checkDecodes, checkFile, checkSegment } from './verify.ts';

export interface EncodedUnits {
  /** Where a unit's encoding in a profile is. */
  pathOf: (unit: Unit, profile: Profile) => string;
  encoded: number;
  reused: number;
}

/**
 * Has every distinct unit encoded in every profile: from the cache where it is there, else by one run of ffmpeg for all
 * profiles. Each file is looked at before it is used, wherever it came from.
 */
export async function encodeUnits(
  deps: { tools: Tools; cache: DiskCache },
  source: SourceFacts & { path: string },
  work: { units: readonly Unit[]; profiles: readonly Profile[]; jobDir: string },
  options: { signal: AbortSignal; onProgress: (fraction: number) => void },
): Promise<EncodedUnits> {
  const { tools, cache } = deps;
  const { profiles, jobDir } = work;
  const distinct = [...new Set(work.units)];
  const indexOf = new Map(distinct.map((unit, index) => [unit, index]));
  const pathOf = (unit: Unit, profile: Profile) => join(jobDir, `unit-${indexOf.get(unit)}-${profile.name}.mp4`);
  const totalFrames = distinct.reduce((sum, unit) => sum + unit.frames, 0);
  const descriptions = new Map(profiles.map((profile) => [profile.name, new Set<string>()]));
  let doneFrames = 0;
  let reused = 0;

  const encodeOne = async (unit: Unit, signal: AbortSignal) => {
    const wanted = profiles.map((profile) => ({
      key: unitKey(unit, profile, source, tools.fingerprint),
      target: pathOf(unit, profile),
    }));
    const encodeAll: Make = async (paths, flightSignal, [film = '']) => {
      const outputs = profiles.map((profile, index) => ({ profile, path: paths[index] ?? '' }));
      await encode(tools, flightSignal, { args: segmentArgs(film, source, unit, outputs) });
      for (const { path } of outputs) await checkSegment(path, unit.frames);
      await checkDecodes(tools, paths, flightSignal);
    };
    const result = await cache.fetch(wanted, signal, encodeAll, [source.path]);
    for (const profile of profiles) {
      try {
        descriptions.get(profile.name)?.add(await checkSegment(pathOf(unit, profile), unit.frames));
      } catch (error) {
        await cache.drop(wanted.map(({ key }) => key));
        throw error;
      }
    }
    if (result.reused) reused += 1;
    doneFrames += unit.frames;
    options.onProgress(doneFrames / totalFrames);
  };

  await together(options.signal, ...distinct.map((unit) => (each: AbortSignal) => encodeOne(unit, each)));
  for (const [name, found] of descriptions) {
    if (found.size !== 1) throw new AppError('verify_failed', { detail: `${name}: segments differ in their headers` });
  }
  return { pathOf, encoded: distinct.length - reused, reused };
}

/**
 * Puts the file of each profile together from encoded units and the soundtrack, by copy, and proves that it holds just
 * them. One run of ffmpeg for all: to start it costs more than the copying.
 */
export async function assemble(
  tools: Tools,
  parts: { units: readonly Unit[]; encoded: EncodedUnits; soundtrack: string; frames: number },
  outputs: readonly { profile: Profile; path: string }[],
  signal: AbortSignal,
): Promise<void> {
  const files = outputs.map(({ profile, path }) => ({
    path,
    list: `${path}.txt`,
    pictures: parts.units.map((unit) => parts.encoded.pathOf(unit, profile)),
  }));
  for (const { list, pictures } of files) await writeFile(list, concatList(parts.units, pictures));
  await encode(tools, signal, {
    args: [
      ...inputArgs(parts.soundtrack, OWN_FORMATS),
      // Headers are equal, which was checked; converting would repeat them in front of every keyframe.
      ...files.flatMap(({ list }) => ['-auto_convert', '0', ...concatInputArgs(list)]),
      ...files.flatMap(({ path }, nth) => [
        ...['-map', `${nth + 1}:v:0`, '-map', '0:a:0', '-c', 'copy', '-video_track_timescale', String(TIMESCALE)],
        ...['-movflags', '+faststart', ...BITEXACT_ARGS, '-f', 'mp4', `file:${path}`],
      ]),
    ],
  });
  for (const { path } of files) await checkFile(path, parts.frames);
  await checkCopied(tools, files, parts.soundtrack, signal);
}

/**
 * The list for the concat demuxer. It counts in microseconds, which a frame is no whole number of: each file is given
 * the length that keeps the sum right, or an hour of frames would drift.
 */
export function concatList(units: readonly Unit[], pictures: readonly string[]): string {
  let frames = 0;
  let micros = 0;
  let list = 'ffconcat version 1.0\n';
  for (const [nth, unit] of units.entries()) {
    frames += unit.frames;
    const end = Math.round((frames * 1_000_000) / FPS);
    list += `${concatLine(pictures[nth] ?? '')}duration ${((end - micros) / 1_000_000).toFixed(6)}\n`;
    micros = end;
  }
  return list;
}
