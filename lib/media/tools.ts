import type PQueue from 'p-queue';
import { AppError } from '../errors.ts';
import { type RunFfmpegOptions, type RunResult, runFfmpeg } from '../ffmpeg/run.ts';

/** What every step that starts a program needs. */
export interface Tools {
  ffmpegPath: string;
  ffprobePath: string;
  /** SHA-256 of the toolchain; part of every key of encoded bytes. */
  fingerprint: string;
  /** Bounds the encoders and decoders running at once, over all bakes of this process. */
  slots: PQueue;
  /** A program without progress for so long is killed. */
  silenceMs: number;
  /** A program is killed after so long. */
  deadlineMs: number;
  /** Headers are read in milliseconds; a file that takes longer is built to hold us up. */
  probeTimeoutMs: number;
}

/**
 * Waits for a slot and runs `work` in it. Waiting ends at once when `signal` fires; a slot taken is free again only when
 * `work` has ended.
 */
export async function inSlot<T>(tools: Pick<Tools, 'slots'>, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let leave: (() => void) | undefined;
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(new AppError('aborted'));
    signal.addEventListener('abort', leave, { once: true });
  });
  const stopWaiting = () => leave && signal.removeEventListener('abort', leave);
  const result = tools.slots.add(async () => {
    stopWaiting();
    if (signal.aborted) throw new AppError('aborted');
    return work();
  });
  try {
    return await Promise.race([result, left]);
  } finally {
    stopWaiting();
    result.catch(() => undefined);
  }
}

/** `runFfmpeg` in a slot, with the limits of these tools. */
export function encode(
  tools: Tools,
  signal: AbortSignal,
  options: Omit<RunFfmpegOptions, 'ffmpegPath' | 'signal' | 'silenceMs' | 'deadlineMs'>,
): Promise<RunResult> {
  const { ffmpegPath, silenceMs, deadlineMs } = tools;
  return inSlot(tools, signal, () => runFfmpeg({ ...options, ffmpegPath, silenceMs, deadlineMs, signal }));
}
