import { createHash } from 'node:crypto';

/**
 * The signature of a TUS upload (https://docs.bunny.net/stream/tus-resumable-uploads), in hex: a plain SHA-256, and with
 * the library's read/write key. `expires` is in Unix seconds and goes along as `AuthorizationExpire`.
 */
export const tusSignature = (libraryId: number | string, apiKey: string, expires: number, guid: string): string =>
  createHash('sha256').update(`${libraryId}${apiKey}${expires}${guid}`).digest('hex');
