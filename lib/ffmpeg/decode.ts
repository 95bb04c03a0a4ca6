import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { inputArgs } from './argv.ts';
import { runFfmpeg } from './run.ts';

export interface DecodeOptions {
  ffmpegPath: string;
  path: string;
  /** Index of the stream in the container. */
  stream: number;
  signal?: AbortSignal | undefined;
  silenceMs: number;
  deadlineMs: number;
  /** Decoding stops here, in seconds of the source's own clock. */
  maxSeconds: number;
  /** Demuxers that may open it; default: what people upload. */
  formats?: readonly string[];
}

export interface VideoMeasure {
  /** Frames that really decoded. */
  frames: number;
  /** From the first decoded timestamp to the last, plus one mean frame. 0 where nothing decoded. */
  durationMs: number;
  /** First decoded timestamp on the container's clock. */
  firstMs: number;
  /** When each frame is shown, in milliseconds after the first, never falling; three decimals. */
  timesMs: number[];
  /** Longest and shortest distance between two frames; both 0 below two frames. */
  longestGapMs: number;
  shortestGapMs: number;
  /** Lines of complaint, and whether ffmpeg gave up. */
  errorLines: number;
  exitCode: number | null;
  stderrTail: string;
}

/** Fine enough for every clock in use: 30, 29.97, 25, 24 and 60 fps divide it, and millisecond clocks nearly. */
const TICKS_PER_MS = 90;

/**
 * Decodes a video stream to its end and tells what came out. Headers lie (38 hours claimed by a seven-second file);
 * this does not: it is the length everything else is planned by. Damage does not throw; it is counted.
 */
export async function measureVideo(options: DecodeOptions): Promise<VideoMeasure> {
  let frames = 0;
  let first = 0;
  let last = 0;
  const timesMs: number[] = [];
  let longest = 0;
  let shortest = Number.POSITIVE_INFINITY;
  const onLine = (line: string) => {
    if (!line.startsWith('0,')) return;
    const pts = Number(line.split(',')[2]);
    if (!Number.isFinite(pts)) return;
    if (frames === 0) first = pts;
    else {
      const gap = pts - last;
      longest = Math.max(longest, gap);
      shortest = Math.min(shortest, gap);
    }
    frames += 1;
    last = frames === 1 ? pts : Math.max(last, pts);
    timesMs.push(Math.round(((last - first) * 1000) / TICKS_PER_MS) / 1000);
  };
  // wrapped_avframe costs nothing to "encode"; framecrc prints one line with the timestamp of each frame.
  const result = await runFfmpeg({
    ffmpegPath: options.ffmpegPath,
    args: [
      // One thread, because how a damaged picture is concealed depends on how the work was cut.
      ...['-threads', '1', '-noautorotate', '-t', String(options.maxSeconds)],
      ...inputArgs(options.path, options.formats),
      ...['-map', `0:${options.stream}`, '-c:v', 'wrapped_avframe', '-fps_mode', 'passthrough'],
      ...['-enc_time_base', `1/${TICKS_PER_MS * 1000}`, '-copyts', '-f', 'framecrc', 'pipe:1'],
    ],
    signal: options.signal,
    silenceMs: options.silenceMs,
    deadlineMs: options.deadlineMs,
    tolerateFailure: true,
    stdout: (stream) => readLines(stream, onLine),
  });
  const span = last - first;
  return {
    frames,
    durationMs: frames > 1 ? (span + span / (frames - 1)) / TICKS_PER_MS : 0,
    firstMs: first / TICKS_PER_MS,
    timesMs,
    longestGapMs: longest / TICKS_PER_MS,
    shortestGapMs: frames > 1 ? shortest / TICKS_PER_MS : 0,
    errorLines: result.stderrLines,
    exitCode: result.code,
    stderrTail: result.stderrTail,
  };
}

export interface AudioMeasure {
  /** Samples per channel at 48 kHz that really decoded. */
  samples: number;
  durationMs: number;
  /** Highest sample of the mono mix in dBFS; -Infinity for digital silence. */
  peakDb: number;
  errorLines: number;
  exitCode: number | null;
  stderrTail: string;
}

/** The project's one sample rate. */
export const SAMPLE_RATE = 48_000;

/** Decodes an audio stream and counts samples; progress lines bridge gaps and cannot be trusted for length. */
export async function measureAudio(options: DecodeOptions): Promise<AudioMeasure> {
  let bytes = 0;
  let peak = 0;
  const result = await runFfmpeg({
    ffmpegPath: options.ffmpegPath,
    args: [
      ...['-t', String(options.maxSeconds)],
      ...inputArgs(options.path, options.formats),
      ...['-map', `0:${options.stream}`, '-ac', '1', '-ar', String(SAMPLE_RATE), '-f', 's16le', 'pipe:1'],
    ],
    signal: options.signal,
    silenceMs: options.silenceMs,
    deadlineMs: options.deadlineMs,
    tolerateFailure: true,
    stdout: async (stream) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        // Sample boundaries need not fall on chunk boundaries: a skipped odd byte costs one sample of the peak only.
        const odd = bytes % 2;
        for (let at = odd; at + 1 < chunk.length; at += 2) peak = Math.max(peak, Math.abs(chunk.readInt16LE(at)));
        bytes += chunk.length;
      }
    },
  });
  const samples = Math.floor(bytes / 2);
  return {
    samples,
    durationMs: (samples / SAMPLE_RATE) * 1000,
    peakDb: 20 * Math.log10(peak / 32_768),
    errorLines: result.stderrLines,
    exitCode: result.code,
    stderrTail: result.stderrTail,
  };
}

export interface Loudness {
  /** Integrated loudness (ITU-R BS.1770, EBU R 128); -Infinity where everything lies below the gate. */
  lufs: number;
  /** dBTP; -Infinity for digital silence. */
  truePeakDb: number;
}

export interface LoudnessOptions {
  ffmpegPath: string;
  /** What stands before and up to `-i`, from `inputArgs`, or a raw PCM description with `pipe:0`. */
  input: readonly string[];
  stdin?: AsyncIterable<Uint8Array>;
  /** Filters to measure behind, ending in a comma. */
  filters?: string;
  signal?: AbortSignal | undefined;
  silenceMs: number;
  deadlineMs: number;
}

/** Measures the first audio stream of the input. */
export async function measureLoudness(options: LoudnessOptions): Promise<Loudness> {
  const result = await runFfmpeg({
    ffmpegPath: options.ffmpegPath,
    args: [
      ...[...options.input, '-map', '0:a:0'],
      ...['-af', `${options.filters ?? ''}ebur128=peak=true:framelog=verbose`, '-f', 'null', '-'],
    ],
    signal: options.signal,
    silenceMs: options.silenceMs,
    deadlineMs: options.deadlineMs,
    stdin: options.stdin,
    logLevel: 'info',
  });
  return parseLoudness(result.stderrTail);
}

/** Reads the summary the ebur128 filter writes at its end. Its gate floor of -70 LUFS means that nothing was heard. */
export function parseLoudness(log: string): Loudness {
  const summary = log.slice(Math.max(0, log.lastIndexOf('Summary:')));
  const integrated = /I:\s+(-?[\d.]+|-?inf|nan) LUFS/.exec(summary)?.[1];
  const peak = /Peak:\s+(-?[\d.]+|-?inf|nan) dBFS/.exec(summary)?.[1];
  if (integrated === undefined || peak === undefined) {
    throw new AppError('ffmpeg_failed', { detail: `no loudness summary: ${log.slice(-500)}` });
  }
  const lufs = Number(integrated);
  return {
    lufs: Number.isFinite(lufs) && lufs > -70 ? lufs : Number.NEGATIVE_INFINITY,
    truePeakDb: Number.isFinite(Number(peak)) ? Number(peak) : Number.NEGATIVE_INFINITY,
  };
}

/** Calls `onLine` for each complete line of a text stream. */
export async function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  let carry = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (carry + chunk).split('\n');
    carry = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  }
  if (carry) onLine(carry);
}
