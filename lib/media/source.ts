import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { AppError } from '../errors.ts';
import { measureVideo, type VideoMeasure } from '../ffmpeg/decode.ts';
import { type ProbeFacts, probe, videoFactsSchema } from '../ffmpeg/probe.ts';
import type { DiskCache, Make } from './disk-cache.ts';
import type { SourceFacts } from './plan.ts';
import { decodeSteadily } from './steady.ts';
import { inSlot, type Tools } from './tools.ts';

/** The longest film an exercise may be cut from. */
export const MAX_SOURCE_SECONDS = 600;
/** The shortest film a repetition can be seen in. */
export const MIN_SOURCE_MS = 250;

const isUndecodable = (error: unknown): error is AppError =>
  error instanceof AppError && error.code === 'source_undecodable';

/**
 * Looks at a file's headers; what is no media, or a playlist in disguise, is `source_undecodable`. It is looked at twice
 * before it is blamed: ffprobe ends with the same status where memory runs out.
 */
export async function probeUpload(tools: Tools, path: string, signal: AbortSignal): Promise<ProbeFacts> {
  const look = () => probe({ ffprobePath: tools.ffprobePath, path, signal, timeoutMs: tools.probeTimeoutMs });
  try {
    return await look().catch((error: unknown) => {
      if (isUndecodable(error)) return look();
      throw error;
    });
  } catch (error) {
    if (isUndecodable(error)) {
      const refused = /Format not on whitelist/.test(error.detail ?? '');
      throw new AppError('source_undecodable', {
        sentence: refused
          ? 'The file is not a video or sound file of a kind that can be used.'
          : 'The file cannot be read as video or sound.',
        detail: error.detail ?? error.message,
      });
    }
    throw error;
  }
}

/**
 * Decodes the whole picture track (one second more than may be, so that what is too long shows), in `deadlineMs` at most,
 * and a damaged one twice.
 */
export function measureUpload(
  tools: Tools,
  path: string,
  stream: number,
  signal: AbortSignal,
  deadlineMs = tools.deadlineMs,
): Promise<VideoMeasure> {
  const { ffmpegPath, silenceMs } = tools;
  const limits = { silenceMs, maxSeconds: MAX_SOURCE_SECONDS + 1 };
  return inSlot(tools, signal, () => {
    const endsAt = performance.now() + deadlineMs;
    return decodeSteadily(
      () => measureVideo({ ffmpegPath, path, stream, signal, ...limits, deadlineMs: endsAt - performance.now() }),
      (first, second) => isDeepStrictEqual(first.timesMs, second.timesMs) && first.firstMs === second.firstMs,
    );
  });
}

const factsSchema = z.object({
  video: videoFactsSchema,
  firstMs: z.number(),
  timesMs: z.array(z.number()).min(1),
  durationMs: z.number().positive(),
});

/**
 * What the bake needs to know of a source, found by decoding it, once: the answer is kept in the cache under the
 * source's hash. Throws `source_no_video`, `source_undecodable`, `source_too_short` or `source_too_long`.
 */
export async function inspectSource(
  tools: Tools,
  cache: DiskCache,
  source: { path: string; sha256: string },
  jobDir: string,
  signal: AbortSignal,
): Promise<SourceFacts> {
  const key = createHash('sha256').update(`source-facts 1 ${tools.fingerprint} ${source.sha256}`).digest('hex');
  const target = join(jobDir, 'source-facts.json');
  const look: Make = async ([path = ''], flightSignal, [film = '']) => {
    const { video } = await probeUpload(tools, film, flightSignal);
    if (!video) throw new AppError('source_no_video');
    const measure = await measureUpload(tools, film, video.index, flightSignal);
    assertUsable(measure);
    const { firstMs, timesMs, durationMs } = measure;
    await writeFile(path, JSON.stringify({ video, firstMs, timesMs, durationMs }));
  };
  await cache.fetch([{ key, target }], signal, look, [source.path]);
  const facts = factsSchema.parse(JSON.parse(await readFile(target, 'utf8')));
  return { ...facts, sha256: source.sha256 };
}

/** Blocks what cannot become a repetition, in words for its author. */
export function assertUsable(measure: VideoMeasure): void {
  const detail = `${measure.frames} frames, exit ${measure.exitCode}: ${measure.stderrTail}`;
  if (measure.frames === 0) throw new AppError('source_undecodable', { detail });
  if (measure.durationMs < MIN_SOURCE_MS) {
    throw new AppError('source_too_short', {
      sentence:
        measure.frames === 1
          ? 'The source video holds a single picture.'
          : `The source video shows ${Math.round(measure.durationMs)} ms; at least ${MIN_SOURCE_MS} ms are needed.`,
      detail,
    });
  }
  if (measure.durationMs > MAX_SOURCE_SECONDS * 1000) {
    throw new AppError('source_too_long', {
      sentence: `The source video is longer than ${MAX_SOURCE_SECONDS / 60} minutes.`,
      detail,
    });
  }
}
