import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { type SuperviseResult, supervise } from './process.ts';

export interface Progress {
  /** Video frames written so far; 0 where there is no video output. */
  frame: number;
  /** Timestamp reached by the output, in milliseconds; it may bridge gaps, so it is no measure of length. */
  outTimeMs: number;
}

export interface RunFfmpegOptions {
  ffmpegPath: string;
  /** Everything after the global flags, which are added here and nowhere else. */
  args: readonly string[];
  signal?: AbortSignal | undefined;
  /** Killed when frame, time and size of the output stand still for so long. */
  silenceMs: number;
  /** Killed after so long, progress or not. */
  deadlineMs: number;
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Fed to `pipe:0`. */
  stdin?: AsyncIterable<Uint8Array> | undefined;
  /** Reads `pipe:1` to its end, at its own pace. */
  stdout?: ((stream: Readable) => Promise<unknown>) | undefined;
  /** `info` for filters that report on the log (ebur128); default `error`. */
  logLevel?: 'error' | 'info';
  /** Resolves with a non-zero `code` instead of throwing, where a damaged input is what is being looked at; not with one that blames the machine. */
  tolerateFailure?: boolean;
}

export interface RunResult extends SuperviseResult {
  progress: Progress;
}

/**
 * Runs ffmpeg once, without a shell, and resolves when the process is gone. Throws `ffmpeg_failed` (detail: exit status
 * and end of stderr), `ffmpeg_silent`, `ffmpeg_timeout`, `aborted`, or what the stdin source or the stdout reader threw.
 * Exit status 0 proves nothing about the output; verify it.
 */
export async function runFfmpeg(options: RunFfmpegOptions): Promise<RunResult> {
  const progress: Progress = { frame: 0, outTimeMs: 0 };
  const result = await supervise({
    path: options.ffmpegPath,
    args: [
      ...['-nostdin', '-hide_banner', '-nostats', '-v', options.logLevel ?? 'error', '-progress', 'pipe:3', '-y'],
      ...options.args,
    ],
    signal: options.signal,
    silenceMs: options.silenceMs,
    deadlineMs: options.deadlineMs,
    stdin: options.stdin,
    stdout: options.stdout,
    side: progressReader(progress, options.onProgress),
  });
  if (isMachineFault(result.code) || (result.code !== 0 && !options.tolerateFailure)) {
    throw new AppError('ffmpeg_failed', { detail: `ffmpeg ended with ${result.code}: ${result.stderrTail}` });
  }
  return { ...result, progress };
}

export interface RunFfprobeOptions {
  ffprobePath: string;
  args: readonly string[];
  signal?: AbortSignal | undefined;
  /** A limit of safety, not of convenience: a padded header can keep ffprobe busy for minutes. */
  timeoutMs: number;
}

/** ffprobe's answers about one file are some kilobytes; more means a file built to flood. */
const MAX_PROBE_BYTES = 4 * 1024 * 1024;

/**
 * Runs ffprobe and resolves to its stdout. Throws `source_undecodable` where ffprobe itself refuses the file;
 * `ffmpeg_failed` where it could not be run or was killed, `ffmpeg_timeout`, `aborted`: none of these is the file's fault.
 */
export async function runFfprobe(options: RunFfprobeOptions): Promise<string> {
  const chunks: Buffer[] = [];
  const result = await supervise({
    path: options.ffprobePath,
    args: ['-hide_banner', '-v', 'error', ...options.args],
    signal: options.signal,
    deadlineMs: options.timeoutMs,
    stdout: async (stream) => {
      let bytes = 0;
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > MAX_PROBE_BYTES) throw new AppError('source_undecodable', { detail: 'ffprobe wrote too much' });
        chunks.push(chunk);
      }
    },
  });
  if (isMachineFault(result.code)) {
    throw new AppError('ffmpeg_failed', { detail: `ffprobe ended with ${result.code}: ${result.stderrTail}` });
  }
  if (result.code !== 0) {
    throw new AppError('source_undecodable', { detail: `ffprobe ended with ${result.code}: ${result.stderrTail}` });
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Exit statuses that say nothing about the input: 127, where the program or its libraries could not be loaded, and the
 * errors that ffmpeg 7 passes on as its status (`AVERROR(e)` is -e).
 */
const MACHINE_FAULTS = new Set([127, 256 - constants.errno.ENOMEM, 256 - constants.errno.ENOSPC]);
const isMachineFault = (code: number) => MACHINE_FAULTS.has(code);

/**
 * Parses `-progress` blocks of `key=value` lines. Only a change of frame, time or size counts as life: newer ffmpeg
 * versions keep reporting from a thread of their own while decoding is stuck.
 */
function progressReader(progress: Progress, onProgress?: (progress: Progress) => void) {
  let carry = '';
  let last = '';
  let block = new Map<string, string>();
  return (chunk: string, touch: () => void) => {
    const lines = (carry + chunk).split('\n');
    carry = lines.pop() ?? '';
    for (const line of lines) {
      const at = line.indexOf('=');
      if (at < 0) continue;
      block.set(line.slice(0, at), line.slice(at + 1).trim());
      if (line.slice(0, at) !== 'progress') continue;
      const state = `${block.get('frame')} ${block.get('out_time_us')} ${block.get('total_size')}`;
      progress.frame = Number(block.get('frame') ?? 0) || 0;
      progress.outTimeMs = (Number(block.get('out_time_us') ?? 0) || 0) / 1000;
      block = new Map();
      if (state === last) continue;
      last = state;
      touch();
      onProgress?.(progress);
    }
  };
}
