import { createHash } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { inputArgs } from '../ffmpeg/argv.ts';
import { measureLoudness, SAMPLE_RATE } from '../ffmpeg/decode.ts';
import { runFfmpeg } from '../ffmpeg/run.ts';
import type { DiskCache, Make } from './disk-cache.ts';
import { MONO_PCM } from './soundtrack.ts';
import { decodeSteadily } from './steady.ts';
import { inSlot, type Tools } from './tools.ts';

/** The longest cue clip. */
export const MAX_CLIP_SECONDS = 15;

/** Every clip is brought to this loudness, so that one voice does not shout and the next whisper. */
const CLIP_LUFS = -20;
/** A clip of room noise is not lifted into a storm. */
const MAX_GAIN_DB = 30;
/** BS.1770 measures in blocks of 400 ms; a shorter clip is repeated until there is enough to measure. */
const MEASURED_SECONDS = 3;

export interface Clip {
  /** Mono 32-bit float PCM at 48 kHz. */
  path: string;
  samples: number;
}

/**
 * Decodes a cue clip once, to mono PCM at an even loudness, kept in the cache under the clip's hash. Throws
 * `source_no_audio`, `source_undecodable` or `source_too_long` with a sentence that names the clip.
 */
export async function prepareClip(
  tools: Tools,
  cache: DiskCache,
  clip: { name: string; path: string; sha256: string },
  jobDir: string,
  signal: AbortSignal,
): Promise<Clip> {
  const key = createHash('sha256').update(`cue 1 ${tools.fingerprint} ${clip.sha256}`).digest('hex');
  const target = join(jobDir, `cue-${clip.name}.f32`);
  const level: Make = async ([path = ''], flightSignal, [spoken = '']) => {
    await inSlot(tools, flightSignal, async () => {
      const samples = await decode(tools, { name: clip.name, path: spoken }, flightSignal);
      await writeFile(path, await levelled(tools, samples, flightSignal));
    });
  };
  await cache.fetch([{ key, target }], signal, level, [clip.path]);
  const { size } = await stat(target);
  return { path: target, samples: size / Float32Array.BYTES_PER_ELEMENT };
}

/** Reads what `prepareClip` wrote. */
export async function loadClip(clip: Clip): Promise<Float32Array> {
  const bytes = await readFile(clip.path);
  // A copy of its own, because a float view must be aligned.
  return new Float32Array(new Uint8Array(bytes).buffer);
}

async function decode(tools: Tools, clip: { name: string; path: string }, signal: AbortSignal): Promise<Float32Array> {
  const { pcm, exitCode, stderrTail } = await decodeSteadily(
    () => decodeOnce(tools, clip.path, signal),
    (first, second) => first.pcm.equals(second.pcm),
  );
  const whole = pcm.length - (pcm.length % Float32Array.BYTES_PER_ELEMENT);
  if (whole === 0) {
    throw new AppError('source_undecodable', {
      sentence: `The voice clip "${clip.name}" cannot be decoded.`,
      detail: `exit ${exitCode}: ${stderrTail}`,
    });
  }
  if (whole > MAX_CLIP_SECONDS * SAMPLE_RATE * Float32Array.BYTES_PER_ELEMENT) {
    throw new AppError('source_too_long', {
      sentence: `The voice clip "${clip.name}" is longer than ${MAX_CLIP_SECONDS} seconds.`,
    });
  }
  return new Float32Array(new Uint8Array(pcm.subarray(0, whole)).buffer);
}

async function decodeOnce(tools: Tools, path: string, signal: AbortSignal) {
  const limit = (MAX_CLIP_SECONDS + 1) * SAMPLE_RATE * Float32Array.BYTES_PER_ELEMENT;
  const chunks: Buffer[] = [];
  let bytes = 0;
  const result = await runFfmpeg({
    ffmpegPath: tools.ffmpegPath,
    args: [
      ...['-t', String(MAX_CLIP_SECONDS + 1), ...inputArgs(path)],
      ...['-map', '0:a:0', '-ac', '1', '-ar', String(SAMPLE_RATE), '-f', 'f32le', 'pipe:1'],
    ],
    silenceMs: tools.silenceMs,
    deadlineMs: tools.deadlineMs,
    signal,
    tolerateFailure: true,
    stdout: async (stream: Readable) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        // `-t` counts the file's own clock, which may lie.
        if (bytes < limit) chunks.push(chunk);
        bytes += chunk.length;
      }
    },
  });
  const { code: exitCode, stderrLines: errorLines, stderrTail } = result;
  return { pcm: Buffer.concat(chunks), exitCode, errorLines, stderrTail };
}

async function levelled(tools: Tools, samples: Float32Array, signal: AbortSignal): Promise<Float32Array> {
  const bytes = new Uint8Array(samples.buffer);
  const times = Math.max(1, Math.ceil((MEASURED_SECONDS * SAMPLE_RATE) / samples.length));
  const { lufs } = await measureLoudness({
    ffmpegPath: tools.ffmpegPath,
    input: MONO_PCM,
    silenceMs: tools.silenceMs,
    deadlineMs: tools.deadlineMs,
    signal,
    stdin: (async function* () {
      for (let time = 0; time < times; time++) yield bytes;
    })(),
  });
  if (!Number.isFinite(lufs)) return samples;
  const gain = 10 ** (Math.min(MAX_GAIN_DB, CLIP_LUFS - lufs) / 20);
  return samples.map((sample) => sample * gain);
}
