import { AppError } from '../errors.ts';

/**
 * Decodes a file, and decodes it again where the first run complained or gave up. What a damaged file comes to is the
 * same each time; what a decoder makes of a good file where memory runs out is not, though it looks just like damage
 * ("Invalid data found", exit 69, measured with ffmpeg 5.1 under a limit). Only an answer that comes twice may be kept
 * or blamed on the file; else throws `ffmpeg_failed`.
 */
export async function decodeSteadily<T extends { exitCode: number | null; errorLines: number }>(
  decode: () => Promise<T>,
  isSame: (first: T, second: T) => boolean,
): Promise<T> {
  const first = await decode();
  if (first.exitCode === 0 && first.errorLines === 0) return first;
  const second = await decode();
  if (isSame(first, second)) return second;
  throw new AppError('ffmpeg_failed', {
    detail: `two decodes of one file differ; exit ${first.exitCode}, then ${second.exitCode}`,
  });
}
