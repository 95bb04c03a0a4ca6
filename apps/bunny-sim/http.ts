import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MiddlewareHandler } from 'hono';
import type { Faults } from './faults.ts';
import type { SimContext, SimEnv } from './journal.ts';

/** Constant time, whatever the lengths. */
export const sameKey = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest());

/** The request's path as it came, still encoded: Hono's own is decoded and its dots are resolved. */
export const rawPath = (c: SimContext): string => (c.env.incoming.url ?? '/').split('?', 1)[0] ?? '/';

/** Aborted when the exchange is over, answered or cut. Hono's own signal would open the body, which is read raw here. */
export function exchangeOver(c: SimContext): AbortSignal {
  const controller = new AbortController();
  c.env.outgoing.once('close', () => controller.abort());
  return controller.signal;
}

/** Ends a wait early, without a throw, when the client goes away or the simulator closes. */
export async function waitQuietly(ms: number, ...signals: AbortSignal[]): Promise<void> {
  await sleep(ms, undefined, { signal: AbortSignal.any(signals) }).catch(() => undefined);
}

/** Latency, 429 and 5xx for one of the APIs. */
export function faultMiddleware(
  faults: Faults,
  closing: AbortSignal,
  refusal: (status: 429 | 500 | 503, message: string) => Response,
): MiddlewareHandler<SimEnv> {
  return async (c, next) => {
    const subject = `${c.req.method} ${rawPath(c)}`;
    if (faults.latencyMs > 0) await waitQuietly(faults.latencyMs, exchangeOver(c), closing);
    if (faults.strikes('rate429', subject)) {
      const response = refusal(429, 'Too many requests');
      response.headers.set('Retry-After', String(faults.retryAfterSeconds));
      return response;
    }
    if (faults.strikes('rate5xx', subject)) {
      return Math.random() < 0.5 ? refusal(500, 'Internal Server Error') : refusal(503, 'Service Unavailable');
    }
    return next();
  };
}

/** Keeps a client waiting for an answer that never comes, then cuts the connection. */
export async function neverAnswer(c: SimContext, faults: Faults, closing: AbortSignal): Promise<Response> {
  await waitQuietly(faults.holdMs, exchangeOver(c), closing);
  c.env.incoming.socket.destroy();
  return new Response(null, { status: 504 });
}

export interface Received {
  file: string;
  bytes: number;
  /** Lower-case hex. */
  sha256: string;
}

/** Streams a request's body into a new file of `folder`; where the connection breaks the file is removed and this throws. */
export async function receiveBody(c: SimContext, folder: string): Promise<Received> {
  const incoming: IncomingMessage = c.env.incoming;
  const file = join(folder, randomUUID());
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    await pipeline(
      incoming,
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          hash.update(chunk);
          bytes += chunk.length;
          yield chunk;
        }
      },
      createWriteStream(file, { flags: 'wx' }),
    );
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    c.set('receivedBytes', bytes);
  }
  return { file, bytes, sha256: hash.digest('hex') };
}

const CHUNK = 64 * 1024;

/** A file, or the part of it that `Range` asks for; 404 (empty) where there is none. */
export async function fileResponse(c: SimContext, file: string, headers: Record<string, string>): Promise<Response> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (!handle) return new Response(null, { status: 404, headers });
  let keepOpen = false;
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) return new Response(null, { status: 404, headers });
    const all = { ...headers, 'Accept-Ranges': 'bytes', 'Last-Modified': facts.mtime.toUTCString() };
    const range = readRange(c.req.header('range'), facts.size);
    if (range === 'unsatisfiable') {
      return new Response(null, { status: 416, headers: { ...all, 'Content-Range': `bytes */${facts.size}` } });
    }
    const { start, end } = range ?? { start: 0, end: facts.size - 1 };
    const length = end - start + 1;
    const sized = {
      ...all,
      'Content-Length': String(length),
      ...(range && { 'Content-Range': `bytes ${start}-${end}/${facts.size}` }),
    };
    const status = range ? 206 : 200;
    // A body under HEAD would be started and never cancelled, and the handle with it.
    if (c.req.method === 'HEAD' || length === 0) return new Response(null, { status, headers: sized });
    keepOpen = true;
    let position = start;
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const want = Math.min(CHUNK, end - position + 1);
          const { bytesRead, buffer } = await handle.read(new Uint8Array(want), 0, want, position);
          if (bytesRead === 0) {
            await handle.close();
            controller.error(new Error('the file became shorter'));
            return;
          }
          position += bytesRead;
          controller.enqueue(buffer.subarray(0, bytesRead));
          if (position > end) {
            await handle.close();
            controller.close();
          }
        },
        cancel: () => handle.close(),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { status, headers: sized });
  } finally {
    if (!keepOpen) await handle.close();
  }
}

/** RFC 9110 §14: one byte range; several, or what is no range, count as none. */
export function readRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (!match) return undefined;
  const [, from = '', to = ''] = match;
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const last = Math.min(Number(to), size);
    return last === 0 ? 'unsatisfiable' : { start: size - last, end: size - 1 };
  }
  const start = Number(from);
  const end = to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== '' && Number(to) < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end };
}

const TYPES: Record<string, string> = {
  m3u8: 'application/vnd.apple.mpegurl',
  ts: 'video/mp2t',
  mp4: 'video/mp4',
  m4a: 'audio/mp4',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  jpg: 'image/jpeg',
  png: 'image/png',
  vtt: 'text/vtt; charset=utf-8',
  json: 'application/json',
};

export const contentTypeOf = (path: string): string =>
  TYPES[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? 'application/octet-stream';
