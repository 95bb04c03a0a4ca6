import { mkdir, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../lib/errors.ts';
import { fileUrl, inputArgs, OWN_FORMATS } from '../../lib/ffmpeg/argv.ts';
import { type AudioFacts, type ProbeFacts, probe, type VideoFacts } from '../../lib/ffmpeg/probe.ts';
import { runFfmpeg } from '../../lib/ffmpeg/run.ts';
import { writeWhole } from './disk.ts';

/** An original that holds a video. */
export interface Source {
  /** As the container claims: a truncated file still claims its full length. */
  durationSeconds: number;
  /** As stored, before rotation. */
  width: number;
  height: number;
  /** Clockwise degrees a player applies. */
  rotation: number;
  framerate: number;
  /** Makes the rungs, lowest first; with each the master playlist in `target` grows. */
  make(options: MakeOptions): AsyncIterable<MadeRung>;
}

/** Resolves to `undefined` where the file holds no video that can be played. */
export type Examine = (file: string, signal: AbortSignal) => Promise<Source | undefined>;

export interface MakeOptions {
  /** An empty folder to work in. */
  work: string;
  /** The video's folder on the CDN; each rung appears there whole. */
  target: string;
  /** Ends the renditions early. */
  limitSeconds: number | undefined;
  signal: AbortSignal;
  /** From 0 to 1. */
  onProgress: (fraction: number) => void;
}

export interface MadeRung {
  /** `360p`. */
  name: string;
  /** What the rung really plays. */
  seconds: number;
  /** What the encoder complained about. */
  complaint: string;
}

const PROBE_TIMEOUT_MS = 20_000;
const SILENCE_MS = 60_000;
const DEADLINE_MS = 30 * 60_000;
const SEGMENT_SECONDS = 4;

/** Short sides of Bunny's rungs. */
const RUNGS = [240, 360, 480, 720, 1080, 1440, 2160];

export interface PlannedRung {
  name: string;
  width: number;
  height: number;
  /** The source's own picture is taken over as it is. */
  copy: boolean;
}

/**
 * The rungs of a source: the highest that needs no upscaling, and one low rung below it. Two keep the simulator cheap
 * while a player still has something to switch between.
 */
export function planRungs(video: Pick<VideoFacts, 'displayWidth' | 'displayHeight'>, copyable: boolean): PlannedRung[] {
  const { displayWidth, displayHeight } = video;
  const shortSide = Math.min(displayWidth, displayHeight);
  const top = RUNGS.findLast((rung) => rung <= shortSide) ?? shortSide;
  const low = [360, 240].find((rung) => rung < top);
  const rung = (side: number): PlannedRung => {
    const even = (length: number) => Math.max(2, Math.round((length * side) / shortSide / 2) * 2);
    const copy = copyable && side === shortSide;
    const size = copy
      ? { width: displayWidth, height: displayHeight }
      : { width: even(displayWidth), height: even(displayHeight) };
    return { name: `${side}p`, ...size, copy };
  };
  return low === undefined ? [rung(top)] : [rung(low), rung(top)];
}

/** Whether the source's own H.264 can stand in an HLS segment and play everywhere. */
const isCopyable = ({ codec, pixFmt, rotation, sampleAspect, interlaced }: VideoFacts) =>
  codec === 'h264' && pixFmt === 'yuv420p' && rotation === 0 && sampleAspect === 1 && !interlaced;

interface Tools {
  ffmpegPath: string;
  ffprobePath: string;
}

interface Original {
  file: string;
  durationSeconds: number;
  video: VideoFacts;
  sound: AudioFacts | undefined;
}

/** A real ladder by ffmpeg: per rung a progressive MP4 and, by stream copy of it, an HLS playlist with its segments. */
export function examineWith(tools: Tools): Examine {
  return async (file, signal) => {
    let facts: ProbeFacts;
    try {
      facts = await probe({ ffprobePath: tools.ffprobePath, path: file, signal, timeoutMs: PROBE_TIMEOUT_MS });
    } catch (error) {
      if (error instanceof AppError && error.code === 'ffmpeg_failed') return undefined;
      throw error;
    }
    const { video } = facts;
    if (!video || video.encrypted || video.width === 0 || video.height === 0) return undefined;
    const durationSeconds = (facts.claimedDurationMs ?? 0) / 1000;
    const original = { file, durationSeconds, video, sound: facts.audio[0] };
    return {
      durationSeconds,
      width: video.width,
      height: video.height,
      rotation: video.rotation,
      framerate: video.averageRate,
      make: (options) => makeLadder(tools, original, options),
    };
  };
}

async function* makeLadder(tools: Tools, original: Original, options: MakeOptions): AsyncGenerator<MadeRung> {
  const { target } = options;
  const rungs = planRungs(original.video, isCopyable(original.video));
  const variants: string[] = [];
  await mkdir(target, { recursive: true });
  for (const [index, rung] of rungs.entries()) {
    const { seconds, bytes, complaint } = await makeRung(tools, original, rung, options, (fraction) =>
      options.onProgress((index + fraction) / rungs.length),
    );
    if (index === 0) await makeThumbnail(tools, join(target, `play_${rung.name}.mp4`), seconds, options);
    variants.push(variantLines(rung, seconds > 0 ? (bytes * 8) / seconds : 0));
    writeWhole(join(target, 'playlist.m3u8'), masterPlaylist(variants));
    yield { name: rung.name, seconds, complaint };
  }
}

async function makeRung(
  tools: Tools,
  original: Original,
  rung: PlannedRung,
  { work, target, limitSeconds, signal }: MakeOptions,
  onProgress: (fraction: number) => void,
) {
  const mp4 = join(work, `${rung.name}.mp4`);
  const expectedMs = Math.max(1, (limitSeconds ?? original.durationSeconds) * 1000);
  const encode = [...encodeArgs(original, rung, limitSeconds), '-movflags', '+faststart', '-f', 'mp4', fileUrl(mp4)];
  // The half packet at the end of a truncated file would not pass into a segment.
  const input = ['-fflags', '+discardcorrupt', ...inputArgs(original.file)];
  const { stderrTail } = await run(tools, [...input, ...encode], signal, (outTimeMs) =>
    onProgress(Math.min(1, outTimeMs / expectedMs)),
  );
  const folder = join(work, rung.name);
  await mkdir(folder);
  await run(tools, [...inputArgs(mp4, OWN_FORMATS), '-map', '0', '-c', 'copy', ...hlsArgs(folder)], signal);
  const seconds = playlistSeconds(await readFile(join(folder, 'video.m3u8'), 'utf8'));
  const { size: bytes } = await stat(mp4);
  await rename(mp4, join(target, `play_${rung.name}.mp4`));
  await rename(folder, join(target, rung.name));
  return { seconds, bytes, complaint: stderrTail };
}

async function makeThumbnail(tools: Tools, mp4: string, seconds: number, { work, target, signal }: MakeOptions) {
  const picture = join(work, 'thumbnail.jpg');
  const seek = ['-ss', (seconds / 3).toFixed(3), ...inputArgs(mp4, OWN_FORMATS)];
  const output = ['-frames:v', '1', '-q:v', '4', '-f', 'image2', '-update', '1', fileUrl(picture)];
  await run(tools, [...seek, ...output], signal);
  await rename(picture, join(target, 'thumbnail.jpg'));
}

async function run(tools: Tools, args: string[], signal: AbortSignal, onTime?: (outTimeMs: number) => void) {
  return runFfmpeg({
    ffmpegPath: tools.ffmpegPath,
    args,
    signal,
    silenceMs: SILENCE_MS,
    deadlineMs: DEADLINE_MS,
    onProgress: ({ outTimeMs }) => onTime?.(outTimeMs),
  });
}

function encodeArgs({ video, sound }: Original, rung: PlannedRung, limitSeconds: number | undefined): string[] {
  return [
    ...['-map', `0:${video.index}`, ...(sound ? ['-map', `0:${sound.index}`] : [])],
    ...(limitSeconds === undefined ? [] : ['-t', limitSeconds.toFixed(3)]),
    ...(rung.copy
      ? ['-c:v', 'copy']
      : [
          ...['-vf', `scale=${rung.width}:${rung.height},setsar=1`, '-pix_fmt', 'yuv420p'],
          ...['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '28', '-threads', '1'],
          ...['-force_key_frames', `expr:gte(t,n_forced*${SEGMENT_SECONDS})`],
        ]),
    ...(sound?.codec === 'aac' ? ['-c:a', 'copy'] : ['-c:a', 'aac', '-ac', '2', '-b:a', '96k']),
    ...['-map_metadata', '-1'],
  ];
}

function hlsArgs(folder: string): string[] {
  return [
    ...['-f', 'hls', '-hls_time', String(SEGMENT_SECONDS), '-hls_playlist_type', 'vod'],
    // The name is a printf pattern, and a folder may hold a percent sign.
    ...['-hls_segment_filename', `${fileUrl(folder).replaceAll('%', '%%')}/video%d.ts`],
    fileUrl(join(folder, 'video.m3u8')),
  ];
}

/** What the segments of a media playlist add up to. */
export const playlistSeconds = (playlist: string): number =>
  [...playlist.matchAll(/^#EXTINF:([\d.]+)/gm)].reduce((sum, match) => sum + Number(match[1]), 0);

/** RESOLUTION is the size as shown. */
export const variantLines = (rung: Pick<PlannedRung, 'name' | 'width' | 'height'>, bitsPerSecond: number): string =>
  `#EXT-X-STREAM-INF:BANDWIDTH=${Math.max(1, Math.ceil(bitsPerSecond))},RESOLUTION=${rung.width}x${rung.height}\n${rung.name}/video.m3u8\n`;

export const masterPlaylist = (variants: string[]): string => `#EXTM3U\n#EXT-X-VERSION:3\n${variants.join('')}`;
