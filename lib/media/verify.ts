import { FPS } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import { inputArgs, OWN_FORMATS } from '../ffmpeg/argv.ts';
import { SAMPLE_RATE } from '../ffmpeg/decode.ts';
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

/** Decodes a finished file to its end; a single complaint of a decoder, or a frame too few, refuses it. */
export async function checkDecodes(
  tools: Tools,
  path: string,
  frames: number,
  options: { signal: AbortSignal; onProgress?: (fraction: number) => void },
): Promise<void> {
  const result = await encode(tools, options.signal, {
    args: [
      ...inputArgs(path, OWN_FORMATS),
      '-map',
      '0:v:0',
      '-map',
      '0:a:0',
      '-fps_mode',
      'passthrough',
      '-f',
      'null',
      '-',
    ],
    onProgress: ({ frame }) => options.onProgress?.(Math.min(1, frame / frames)),
  });
  if (result.stderrLines > 0) throw refused(path, `the decoder complains: ${result.stderrTail}`);
  if (result.progress.frame !== frames) throw refused(path, `${result.progress.frame} frames decode, not ${frames}`);
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
