import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { AppError } from '../errors.ts';
import {
  backOff,
  type CallOptions,
  callForHeaders,
  readFrom,
  retrying,
  type Service,
  TRIES,
  worthRetrying,
} from './http.ts';

/**
 * The signature of a TUS upload (https://docs.bunny.net/stream/tus-resumable-uploads), in hex: a plain SHA-256, and with
 * the library's read/write key. `expires` is in Unix seconds and goes along as `AuthorizationExpire`.
 */
export const tusSignature = (libraryId: number | string, apiKey: string, expires: number, guid: string): string =>
  createHash('sha256').update(`${libraryId}${apiKey}${expires}${guid}`).digest('hex');

export interface TusOptions {
  /** Without a trailing slash. */
  baseUrl: string;
  libraryId: number | string;
  apiKey: string;
  silenceMs: number;
  /** Sent per request, in bytes; default 64 MiB, which is what Bunny's own command line takes. */
  chunkBytes?: number;
}

/** As Bunny's own command line signs. Every request is signed anew, so it bounds one chunk, not the upload. */
const SIGNED_FOR_SECONDS = 6 * 3600;

/**
 * Uploads a file in chunks, each taken up where the last one broke. Throws `AppError` as `StreamClient` does, except that
 * a vanished upload is `bunny_unavailable`: it may have ended well, so look at the video.
 */
export async function uploadByTus(
  options: TusOptions,
  video: { guid: string; title: string },
  file: string,
  { signal }: CallOptions = {},
): Promise<void> {
  const { libraryId, apiKey, chunkBytes = 64 * 1024 * 1024 } = options;
  const { size } = await stat(file);
  const service: Service = {
    name: 'Bunny TUS',
    baseUrl: options.baseUrl,
    silenceMs: options.silenceMs,
    codes: { notFound: 'bunny_unavailable', unavailable: 'bunny_unavailable', refused: 'bunny_refused' },
    // 409: our idea of the offset is wrong; 423: an earlier request of ours still writes.
    retryableRefusal: (status) => status === 409 || status === 423,
  };
  const signed = (): Record<string, string> => {
    const expires = Math.floor(Date.now() / 1000) + SIGNED_FOR_SECONDS;
    return {
      'Tus-Resumable': '1.0.0',
      AuthorizationSignature: tusSignature(libraryId, apiKey, expires, video.guid),
      AuthorizationExpire: String(expires),
      LibraryId: String(libraryId),
      VideoId: video.guid,
    };
  };
  const base64 = (text: string) => Buffer.from(text).toString('base64');

  const begin = async (): Promise<URL> => {
    const metadata = `filetype ${base64('video/mp4')},title ${base64(video.title)}`;
    const headers = { ...signed(), 'Upload-Length': String(size), 'Upload-Metadata': metadata };
    const answer = await callForHeaders(service, { method: 'POST', target: '/tusupload', headers, signal });
    const location = answer.get('location');
    if (location === null) throw new AppError('bunny_unavailable', { detail: 'Bunny TUS: created without a Location' });
    return new URL(location, `${options.baseUrl}/tusupload`);
  };
  // A second upload begun for nothing does no harm: nobody ends it.
  const url = await retrying(begin, signal);
  const upload: Service = { ...service, baseUrl: url.origin };
  const target = `${url.pathname}${url.search}`;

  const offsetIn = (headers: Headers): number => {
    const offset = Number(headers.get('upload-offset') ?? Number.NaN);
    if (Number.isSafeInteger(offset) && offset >= 0 && offset <= size) return offset;
    throw new AppError('bunny_unavailable', { detail: 'Bunny TUS: an answer without a usable Upload-Offset' });
  };
  const send = async (from: number): Promise<number> => {
    const to = Math.min(size, from + chunkBytes);
    const body = { stream: readFrom(file, { start: from, end: to - 1 }), bytes: to - from };
    const headers = {
      ...signed(),
      'Upload-Offset': String(from),
      'Content-Type': 'application/offset+octet-stream',
    };
    return offsetIn(await callForHeaders(upload, { method: 'PATCH', target, headers, body, signal }));
  };
  const ask = async () => offsetIn(await callForHeaders(upload, { method: 'HEAD', target, headers: signed(), signal }));

  let offset = 0;
  for (let failed = 0; offset < size; ) {
    try {
      if (failed > 0) {
        const arrived = await ask();
        if (arrived > offset) failed = 0;
        offset = arrived;
      }
      while (offset < size) {
        offset = await send(offset);
        failed = 0;
      }
    } catch (error) {
      failed += 1;
      if (failed >= TRIES || !worthRetrying(error)) throw error;
      await backOff(failed, error, signal);
    }
  }
}
