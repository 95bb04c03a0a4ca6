import { AppError } from '../errors.ts';

/** Longest path that Edge Storage takes (https://docs.bunny.net/storage/limits). */
const LONGEST_PATH = 6000;

/**
 * Why a decoded storage path may not be used, or `undefined` where it may. Segments are separated by `/`, with no slash
 * at either end. An empty segment is never let through: `DELETE dir/` would delete the directory with all in it.
 */
export function storagePathProblem(path: string): string | undefined {
  if (path.length > LONGEST_PATH) return `longer than ${LONGEST_PATH} characters`;
  for (const segment of path.split('/')) {
    if (segment === '') return 'an empty segment';
    if (segment === '.' || segment === '..') return 'a dot segment';
    if (segment.trim() !== segment) return 'a name that starts or ends with a space';
    if (/\p{Surrogate}/u.test(segment)) return 'half a character';
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
    if (/[\u0000-\u001f\u007f\\]/.test(segment)) return 'a control character or a backslash';
  }
  return undefined;
}

/** Encodes a path for use in a URL; throws `storage_failed`, not retryable, for one that must not be used. */
export function encodeStoragePath(path: string): string {
  const problem = storagePathProblem(path);
  if (problem !== undefined) {
    throw new AppError('storage_failed', { retryable: false, detail: `storage path with ${problem}` });
  }
  return path.split('/').map(encodeURIComponent).join('/');
}
