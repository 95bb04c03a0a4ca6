import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, type ErrorCode, toAppError } from '../errors.ts';
import { bodyOf, SENT_ONCE, startWatch, textOf, underWatch, type Watch } from '../http-watch.ts';

/** One of Bunny's two HTTP services, as seen by the calls below. */
export interface Service {
  /** Names the service in log details. */
  name: string;
  /** Without a trailing slash. */
  baseUrl: string;
  /** Sent as `AccessKey`; TUS signs its requests otherwise. */
  accessKey?: string;
  /** An exchange on which no byte has moved in either direction for this long is given up. */
  silenceMs: number;
  codes: { notFound: ErrorCode; unavailable: ErrorCode; refused: ErrorCode };
  /** Client errors (4xx) of this service that another try can cure. */
  retryableRefusal?: (status: number, message: string) => boolean;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** A file by its path, bytes in memory, or a stream, read once and the caller's to destroy; `bytes` is its length where known. */
export type UploadBody = string | Uint8Array | { stream: Readable | AsyncIterable<Uint8Array>; bytes?: number };

interface Call extends CallOptions {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query below the base URL, already encoded, with its leading slash. */
  target: string;
  headers?: Record<string, string>;
  body?: UploadBody;
}

const say = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${say(error.cause)}`;
};

function broken(service: Service, request: Call, error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (request.signal?.aborted) return new AppError('aborted', { cause: error });
  return new AppError(service.codes.unavailable, {
    detail: `${service.name} ${request.method} ${request.target}: ${say(error)}`,
    retryable: true,
    cause: error,
  });
}

async function* watched(source: AsyncIterable<Uint8Array>, watch: Watch): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    watch.touch();
    // fetch never ends a request whose body gave it an empty chunk (undici 6.24).
    if (chunk.byteLength > 0) yield chunk;
  }
}

/** Opens the file only when somebody reads: an exchange that fails before leaves nothing open. */
export async function* readFrom(
  file: string,
  range: { start?: number; end?: number } = {},
): AsyncGenerator<Uint8Array> {
  yield* createReadStream(file, range);
}

async function openBody(body: UploadBody): Promise<{ source: AsyncIterable<Uint8Array>; bytes: number | undefined }> {
  if (typeof body === 'string') {
    const { size } = await stat(body).catch((error: unknown) => {
      throw toAppError(error);
    });
    return { source: readFrom(body), bytes: size };
  }
  if (body instanceof Uint8Array) {
    return {
      source: (async function* () {
        yield body;
      })(),
      bytes: body.byteLength,
    };
  }
  return { source: body.stream, bytes: body.bytes };
}

/**
 * One exchange, not retried. Resolves with a 2xx answer whose body is still unread and the watch that guards it, which
 * the caller must stop; everything else is thrown as an `AppError`.
 */
async function send(service: Service, request: Call): Promise<{ response: Response; watch: Watch }> {
  const watch = startWatch(request.signal, service.silenceMs);
  let ours: unknown;
  async function* fed(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* watched(source, watch);
    } catch (error) {
      ours = error;
      throw error;
    }
  }
  try {
    const headers: Record<string, string> = { ...request.headers };
    if (service.accessKey !== undefined) headers.AccessKey = service.accessKey;
    const init: RequestInit = { ...SENT_ONCE, method: request.method, headers, signal: watch.signal };
    if (request.body !== undefined) {
      const { source, bytes } = await openBody(request.body);
      if (bytes !== undefined) headers['Content-Length'] = String(bytes);
      init.body = fed(source);
      init.duplex = 'half';
    }
    const response = await underWatch(watch, fetch(`${service.baseUrl}${request.target}`, init));
    watch.touch();
    if (!response.ok) throw refusal(service, request, response, await textOf(response, watch));
    return { response, watch };
  } catch (error) {
    watch.stop();
    // What our own source threw is not Bunny's failure, though fetch reports it as one.
    throw ours === undefined ? broken(service, request, error) : toAppError(ours);
  }
}

/** What Bunny says about a call, in whichever casing: `success`, `message` and `statusCode`, `Success`…, or `HttpCode` and `Message`. */
function readStatus(body: unknown): { success?: boolean; message?: string; statusCode?: number } {
  const item: unknown = Array.isArray(body) ? body[0] : body;
  if (typeof item !== 'object' || item === null) return {};
  const found: { success?: boolean; message?: string; statusCode?: number } = {};
  for (const [key, value] of Object.entries(item)) {
    const name = key.toLowerCase();
    if (name === 'success' && typeof value === 'boolean') found.success = value;
    if (name === 'message' && typeof value === 'string') found.message = value;
    if ((name === 'statuscode' || name === 'httpcode') && typeof value === 'number') found.statusCode = value;
  }
  return found;
}

/** Answers are not always JSON, nor always there: whatever is not JSON is `undefined`. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Milliseconds that a `Retry-After` header asks for, as seconds or as a date; `undefined` where it says neither. */
function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function refusal(service: Service, request: Call, response: Response, text: string): AppError {
  const message = readStatus(parseJson(text)).message ?? text.slice(0, 300);
  return refusalOf(service, request, response.status, message, retryAfterMs(response.headers.get('retry-after')));
}

function refusalOf(service: Service, request: Call, status: number, message: string, waitMs?: number): AppError {
  const detail = `${service.name} ${request.method} ${request.target} answered ${status}: ${message}`;
  if (status === 401 || status === 403) return new AppError('bunny_unauthorized', { detail });
  if (status === 404) return new AppError(service.codes.notFound, { detail });
  if (status >= 500 || status === 429 || status === 408 || service.retryableRefusal?.(status, message)) {
    return new AppError(service.codes.unavailable, {
      detail,
      retryable: true,
      ...(waitMs !== undefined && { retryAfterMs: waitMs }),
    });
  }
  return new AppError(service.codes.refused, { detail, retryable: false });
}

/** One exchange, its answer read to the end: JSON, or `undefined` where the body is empty or something else. */
export async function call(service: Service, request: Call): Promise<unknown> {
  const { response, watch } = await send(service, request);
  try {
    const body = parseJson(await textOf(response, watch));
    const said = readStatus(body);
    if (said.success === false) {
      throw refusalOf(service, request, said.statusCode ?? response.status, said.message ?? 'success: false');
    }
    return body;
  } catch (error) {
    throw broken(service, request, error);
  } finally {
    watch.stop();
  }
}

/** One exchange of which only the answer's headers matter. */
export async function callForHeaders(service: Service, request: Call): Promise<Headers> {
  const { response, watch } = await send(service, request);
  try {
    await textOf(response, watch);
    return response.headers;
  } catch (error) {
    throw broken(service, request, error);
  } finally {
    watch.stop();
  }
}

export interface Download {
  /** The body's length where the answer tells it. */
  bytes: number | undefined;
  contentType: string | undefined;
  /** Must be read or destroyed. Fails with an `AppError` where the connection breaks, or is silent or unread too long. */
  stream: Readable;
}

/** One exchange whose answer is handed on as it comes. */
export async function download(service: Service, request: Call): Promise<Download> {
  const { response, watch } = await send(service, {
    ...request,
    headers: { ...request.headers, 'Accept-Encoding': 'identity' },
  });
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      yield* bodyOf(response, watch);
    } catch (error) {
      throw broken(service, request, error);
    }
  }
  const length = response.headers.get('content-length');
  const stream = Readable.from(read(), { objectMode: false });
  // Not in the generator's `finally`: that never runs where nobody has started to read.
  stream.once('close', () => watch.stop());
  return {
    bytes: length === null ? undefined : Number(length),
    contentType: response.headers.get('content-type') ?? undefined,
    stream,
  };
}

/** Tries inside a client; what still fails after them is for the caller's own, slower schedule. */
export const TRIES = 3;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;

/** Waits before try number `failed` + 1: full jitter over a doubling bound, never less than the other side asked for. */
export async function backOff(failed: number, error: AppError, signal: AbortSignal | undefined): Promise<void> {
  const jitter = Math.random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failed);
  try {
    await sleep(Math.max(jitter, error.retryAfterMs ?? 0), undefined, { signal });
  } catch (cause) {
    throw new AppError('aborted', { cause });
  }
}

/** Whether waiting in place is worth it: not for an abort, nor where we are asked to come back much later. */
export const worthRetrying = (error: unknown): error is AppError =>
  error instanceof AppError &&
  error.retryable &&
  error.code !== 'aborted' &&
  (error.retryAfterMs ?? 0) <= LONGEST_WAIT_MS;

/** Runs an idempotent operation up to `TRIES` times. */
export async function retrying<T>(operation: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let failed = 1; ; failed += 1) {
    try {
      return await operation();
    } catch (error) {
      if (failed >= TRIES || !worthRetrying(error)) throw error;
      await backOff(failed, error, signal);
    }
  }
}
