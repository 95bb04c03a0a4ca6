import { createHash } from 'node:crypto';
import { AppError } from '../errors.ts';
import { supervise } from './process.ts';
import { runFfmpeg } from './run.ts';

/** What the bake, the measurements and the audio endpoint call by name. */
export const NEEDED = {
  encoders: ['libx264', 'aac', 'mjpeg', 'pcm_s16le', 'pcm_f32le', 'wrapped_avframe'],
  filters: [
    ...['trim', 'setpts', 'fps', 'loop', 'scale', 'pad', 'setsar', 'setparams', 'hflip', 'split', 'format', 'yadif'],
    ...['settb', 'ebur128', 'alimiter', 'volume', 'aresample', 'atrim', 'apad', 'pan'],
  ],
  demuxers: ['mov', 'matroska', 'mpegts', 'avi', 'concat', 'wav', 'mp3', 'aac', 'ogg', 'flac', 'rawvideo', 'f32le'],
  muxers: ['mp4', 'wav', 'mjpeg', 'framecrc', 'framemd5', 'null', 's16le', 'f32le', 'h264'],
} as const;

export type Needs = { [Kind in keyof typeof NEEDED]: readonly string[] };

/** Binaries that were found to have all that is needed. */
export interface Toolchain {
  ffmpegPath: string;
  ffprobePath: string;
  /** E.g. `5.1.9-0+deb12u1`. */
  version: string;
  /** E.g. `core 164 r3095 baee400`. */
  x264: string;
  /**
   * SHA-256 hex of everything that decides the bytes an encode produces: ffmpeg's version and configuration, x264's
   * core, the processor architecture.
   */
  fingerprint: string;
}

const TIMEOUT_MS = 20_000;

/**
 * Asks the binaries what they can do and encodes one frame. Throws `ffmpeg_failed` whose detail names everything that
 * is missing, in words for whoever installed it.
 */
export async function checkToolchain(
  tools: { ffmpegPath: string; ffprobePath: string },
  needs: Needs = NEEDED,
): Promise<Toolchain> {
  const [about, probeAbout] = await Promise.all([
    ask(tools.ffmpegPath, ['-version']),
    ask(tools.ffprobePath, ['-version']),
  ]);
  const version = /^ffmpeg version (\S+)/.exec(about)?.[1];
  if (!version) throw lacks(`${tools.ffmpegPath} does not introduce itself as ffmpeg`);
  if (!/^ffprobe version /.test(probeAbout)) throw lacks(`${tools.ffprobePath} does not introduce itself as ffprobe`);
  // Builds from git are named N-12345-gabcdef or by date; they are new enough.
  const major = Number(/^n?(\d+)\./.exec(version)?.[1] ?? Number.POSITIVE_INFINITY);
  if (major < 5) throw lacks(`ffmpeg ${version} is too old: 5.1 or newer is needed (-fps_mode)`);

  const kinds = Object.keys(needs) as (keyof Needs)[];
  const missing = await Promise.all(
    kinds.map(async (kind) => {
      const has = parseNames(await ask(tools.ffmpegPath, ['-hide_banner', `-${kind}`]));
      return needs[kind].filter((name) => !has.has(name)).map((name) => `${kind.slice(0, -1)} ${name}`);
    }),
  );
  if (missing.flat().length > 0) throw lacks(`ffmpeg ${version} lacks: ${missing.flat().join(', ')}`);

  const x264 = await x264Core(tools.ffmpegPath);
  const configuration = /^configuration: (.*)$/m.exec(about)?.[1] ?? '';
  const fingerprint = toolchainFingerprint({ version, configuration, x264 });
  return { ffmpegPath: tools.ffmpegPath, ffprobePath: tools.ffprobePath, version, x264, fingerprint };
}

/** @see Toolchain.fingerprint */
export function toolchainFingerprint(parts: { version: string; configuration: string; x264: string }): string {
  return createHash('sha256')
    .update(JSON.stringify([parts.version, parts.configuration, parts.x264, process.arch]))
    .digest('hex');
}

/** Names in ffmpeg's lists: a column of flags, then a name (or several, with commas), then a description. */
export function parseNames(list: string): Set<string> {
  const names = new Set<string>();
  for (const line of list.split('\n')) {
    if (!line.startsWith(' ')) continue;
    // Flags may stand apart ("D d"), and small builds print no descriptions.
    const found = line
      .trim()
      .split(/\s+/)
      .find((word) => !/^[A-Z.|]*d?$/.test(word));
    for (const name of found?.split(',') ?? []) if (/^[a-z0-9_]+$/.test(name)) names.add(name);
  }
  return names;
}

/** x264 writes its version into the stream it encodes, and nowhere a command could ask for it. */
async function x264Core(ffmpegPath: string): Promise<string> {
  const chunks: Buffer[] = [];
  const grey = Buffer.alloc((64 * 64 * 3) / 2, 128);
  await runFfmpeg({
    ffmpegPath,
    args: [
      ...['-f', 'rawvideo', '-video_size', '64x64', '-pixel_format', 'yuv420p', '-i', 'pipe:0'],
      ...['-frames:v', '1', '-c:v', 'libx264', '-f', 'h264', 'pipe:1'],
    ],
    silenceMs: TIMEOUT_MS,
    deadlineMs: TIMEOUT_MS,
    stdin: (async function* () {
      yield grey;
    })(),
    stdout: async (stream) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    },
  });
  const core = /x264 - (core \S+(?: r\S+ \w+)?)/.exec(Buffer.concat(chunks).toString('latin1'))?.[1];
  if (!core) throw lacks('libx264 encodes, but does not name its version');
  return core;
}

async function ask(path: string, args: string[]): Promise<string> {
  let text = '';
  const result = await supervise({
    path,
    args,
    deadlineMs: TIMEOUT_MS,
    stdout: async (stream) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) text += chunk.toString('utf8');
    },
  });
  if (result.code !== 0) throw lacks(`${path} ${args.join(' ')} ended with ${result.code}: ${result.stderrTail}`);
  return text;
}

const lacks = (detail: string) =>
  new AppError('ffmpeg_failed', { sentence: `ffmpeg cannot be used: ${detail}`, detail });
