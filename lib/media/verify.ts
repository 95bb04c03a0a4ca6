import { FPS } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import { BITEXACT_ARGS, inputArgs, OWN_FORMATS } from '../ffmpeg/argv.ts';
import { readLines, SAMPLE_RATE } from '../ffmpeg/decode.ts';
import { readMp4, type TrackFacts } from './mp4.ts';
import { TICKS_PER_FRAME, TIMESCALE } from './segments.ts';
import { encode, type Tools } from './tools.ts';

/** Samples an AAC frame holds: the encoder starts one frame early and fills up the last. */
const AAC_FRAME = 1024;

/**
 * A picture track of exactly `frames` frames, each of the same length, shown in the order they are decoded in: whoever
 * adds up such tracks gets frame-exact offsets and decoding times that never fall. Resolves to its description; tracks
 * with equal ones can follow each other.
 */
export async function checkSegment(path: string, frames: number): Promise<string> {
  const { tracks } = await readMp4(path);
  const [picture] = tracks;
  if (!picture || tracks.length !== 1) throw refused(path, `${tracks.length} tracks`);
  checkPicture(path, picture, frames);
  return picture.description;
}

/** A finished file: index first, one picture track and one sound track, both exactly as long as `frames` frames. */
export async function checkFile(path: string, frames: number): Promise<void> {
  const { fastStart, tracks } = await readMp4(path);
  const [picture, sound] = tracks;
  if (!fastStart) throw refused(path, 'the index is not at the start');
  if (!picture || !sound || tracks.length !== 2) throw refused(path, `${tracks.length} tracks`);
  checkPicture(path, picture, frames);
  if (sound.handler !== 'soun' || sound.timescale !== SAMPLE_RATE) throw refused(path, 'the second track is no sound');
  const wanted = (frames * SAMPLE_RATE) / FPS;
  const extra = sound.duration - wanted;
  if (extra < 0 || extra > 2 * AAC_FRAME) throw refused(path, `${sound.duration} samples of sound, not ${wanted}`);
}

/**
 * Decodes files to their ends; a single complaint of a decoder refuses them. Counting frames is left to the index, which
 * `checkSegment` and `checkFile` read.
 */
export async function checkDecodes(tools: Tools, paths: readonly string[], signal: AbortSignal): Promise<void> {
  const result = await encode(tools, signal, {
    args: [
      ...paths.flatMap((path) => inputArgs(path, OWN_FORMATS)),
      ...paths.flatMap((_, index) => ['-map', String(index)]),
      ...DECODED,
    ],
  });
  if (result.stderrLines > 0) throw refused(paths.join(', '), `the decoder complains: ${result.stderrTail}`);
}

/** Ends the list of an output that is decoded and thrown away. */
const DECODED = ['-fps_mode', 'passthrough', '-f', 'null', '-'];

/**
 * So much of a master is decoded as a player would: its headers and first seams. The rest is proven to be made of parts
 * that were decoded when they were made.
 */
const OPENING_SECONDS = 20;

/** Decodes the opening of a master as `checkDecodes` does, and in the same run has one of its frames made into a JPEG. */
export async function checkOpening(
  tools: Tools,
  master: string,
  poster: { frame: number; path: string },
  signal: AbortSignal,
): Promise<void> {
  const result = await encode(tools, signal, {
    args: [
      ...['-t', String(OPENING_SECONDS), ...inputArgs(master, OWN_FORMATS)],
      // A quarter of a frame early, so that rounding cannot skip it.
      ...['-ss', Math.max(0, (poster.frame - 0.25) / FPS).toFixed(6), ...inputArgs(master, OWN_FORMATS)],
      ...['-map', '0', ...DECODED],
      ...['-map', '1:v:0', '-frames:v', '1', '-vf', 'scale=out_range=pc,format=yuvj420p', '-c:v', 'mjpeg', '-q:v', '3'],
      ...['-threads', '1', ...BITEXACT_ARGS, '-f', 'mjpeg', `file:${poster.path}`],
    ],
  });
  if (result.stderrLines > 0) throw refused(master, `the decoder complains: ${result.stderrTail}`);
}

/** A file, and what its picture was put together from, in order. */
export interface Copied {
  path: string;
  pictures: readonly string[];
}

/**
 * Refuses files whose picture or sound is not, packet by packet, what they were put together from. The parts were decoded
 * when they were made and each starts with a keyframe and refers to nothing outside, so the whole decodes as they did:
 * proven in a second for what would take minutes to decode again.
 */
export async function checkCopied(
  tools: Tools,
  files: readonly Copied[],
  sound: string,
  signal: AbortSignal,
): Promise<void> {
  const pieces = [...new Set(files.flatMap(({ pictures }) => pictures))];
  const inputs = [sound, ...pieces, ...files.map(({ path }) => path)];
  const maps = [
    ...[sound, ...pieces].map((_, input) => `${input}:0`),
    ...files.flatMap((_, nth) => ['v:0', 'a:0'].map((stream) => `${1 + pieces.length + nth}:${stream}`)),
  ];
  const [wanted = [], ...hashes] = await packetHashes(tools, inputs, maps, signal);
  const hashesOf = new Map(pieces.map((piece, index) => [piece, hashes[index] ?? []]));
  for (const [nth, { path, pictures }] of files.entries()) {
    const [picture = [], heard = []] = hashes.slice(pieces.length + 2 * nth);
    let at = 0;
    for (const piece of pictures) {
      for (const hash of hashesOf.get(piece) ?? []) {
        if (picture[at] !== hash) throw refused(path, `frame ${at} is not the one of ${piece}`);
        at += 1;
      }
    }
    if (at !== picture.length) throw refused(path, `${picture.length} frames, not ${at}`);
    if (wanted.length === 0 || wanted.length !== heard.length || wanted.some((hash, index) => hash !== heard[index])) {
      throw refused(path, 'the sound is not the soundtrack');
    }
  }
}

/** MD5 of each packet of each mapped stream, in order; nothing is decoded. */
async function packetHashes(
  tools: Tools,
  paths: readonly string[],
  maps: readonly string[],
  signal: AbortSignal,
): Promise<string[][]> {
  const streams: string[][] = maps.map(() => []);
  await encode(tools, signal, {
    args: [
      ...paths.flatMap((path) => inputArgs(path, OWN_FORMATS)),
      ...maps.flatMap((map) => ['-map', map]),
      ...['-c', 'copy', '-f', 'framemd5', 'pipe:1'],
    ],
    // Columns: stream, dts, pts, duration, size, hash.
    stdout: (stream) =>
      readLines(stream, (line) => {
        const columns = line.split(',');
        if (columns.length >= 6) streams[Number(columns[0])]?.push((columns[5] ?? '').trim());
      }),
  });
  return streams;
}

function checkPicture(path: string, track: TrackFacts, frames: number): void {
  if (track.handler !== 'vide' || track.timescale !== TIMESCALE) throw refused(path, 'the first track is no picture');
  if (track.samples !== frames) throw refused(path, `${track.samples} frames, not ${frames}`);
  if (track.deltas.length !== 1 || track.deltas[0] !== TICKS_PER_FRAME) {
    throw refused(path, `frames of ${track.deltas.join(', ')} ticks`);
  }
  if (track.reordered) throw refused(path, 'frames are not in the order of their decoding');
}

const refused = (path: string, detail: string) => new AppError('verify_failed', { detail: `${path}: ${detail}` });
