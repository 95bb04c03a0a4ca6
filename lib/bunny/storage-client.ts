import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { AppError } from '../errors.ts';
import { type CallOptions, call, type Download, download, retrying, type Service, type UploadBody } from './http.ts';
import { encodeStoragePath } from './storage-path.ts';

export interface StorageClientOptions {
  /** The zone's regional endpoint (`https://storage.bunnycdn.com`, `https://ny.storage.bunnycdn.com`); a wrong region answers 401. */
  baseUrl: string;
  zone: string;
  /** The zone's password, or its read-only password, which may only get and list. */
  accessKey: string;
  /** How long an exchange on which no byte moves may stay silent. Default 30 000. */
  timeoutMs?: number;
}

export interface StoredObject {
  /** Path below the zone, without slashes at its ends. */
  path: string;
  isDirectory: boolean;
  bytes: number;
  /** Lower-case hex, where the zone knows it. */
  sha256: string | undefined;
  changedAt: Date;
}

const listed = z.array(
  z.looseObject({
    ObjectName: z.string().min(1),
    Length: z.number().catch(0),
    IsDirectory: z.boolean(),
    LastChanged: z.string(),
    Checksum: z.string().nullish().catch(undefined),
  }),
);

export type StorageClient = ReturnType<typeof createStorageClient>;

/**
 * One Edge Storage zone. Paths are plain (`renders/abc/master.mp4`), guarded and encoded here. Every method throws
 * `AppError` only: `bunny_unauthorized` for 401 and 403, `not_found`, `aborted`, and `storage_failed`, retryable for 429,
 * 5xx, a broken or silent connection, bytes hurt on the way and the 400 by which the zone says that it is busy. What can
 * be repeated is tried 3 times.
 */
export function createStorageClient(options: StorageClientOptions) {
  const service: Service = {
    name: 'Bunny Storage',
    baseUrl: options.baseUrl.replace(/\/+$/, ''),
    accessKey: options.accessKey,
    silenceMs: options.timeoutMs ?? 30_000,
    codes: { notFound: 'not_found', unavailable: 'storage_failed', refused: 'storage_failed' },
    // Too many requests at a time answer "Unable to process request" (limits: 5 listings, 30 deletes); a body that does
    // not have the Checksum we sent along was hurt on the way.
    retryableRefusal: (status, message) => status === 400 && /unable to process request|checksum/i.test(message),
  };
  const zone = `/${encodeURIComponent(options.zone)}`;
  const target = (path: string) => `${zone}/${encodeStoragePath(path)}`;

  const client = {
    /**
     * Stores a file; directories appear by themselves, an older file of that name is replaced. With `sha256` (hex) the
     * zone refuses bytes that are not those. A body that can be read only once is sent once.
     */
    async put(
      path: string,
      body: UploadBody,
      { sha256, contentType, signal }: { sha256?: string; contentType?: string } & CallOptions = {},
    ): Promise<void> {
      const put = () =>
        call(service, {
          method: 'PUT',
          target: target(path),
          headers: {
            'Content-Type': contentType ?? 'application/octet-stream',
            // What the zone's CDN answers with; the official SDK names it so.
            ...(contentType !== undefined && { 'Override-Content-Type': contentType }),
            ...(sha256 !== undefined && { Checksum: sha256.toUpperCase() }),
          },
          body,
          signal,
        });
      const repeatable = typeof body === 'string' || body instanceof Uint8Array;
      await (repeatable ? retrying(put, signal) : put());
    },

    /** Opens a file for reading; what breaks once bytes flow is thrown by the iteration. */
    async get(path: string, { signal }: CallOptions = {}): Promise<Download> {
      return retrying(() => download(service, { method: 'GET', target: target(path), signal }), signal);
    },

    /**
     * Fetches a file to disk: it appears at `file` only when whole. `source_too_large` above `maxBytes`; with `sha256`
     * (hex), bytes that differ are fetched again, and are `asset_corrupt` when they come out wrong in the same way twice.
     */
    async getToFile(
      path: string,
      file: string,
      { maxBytes, sha256, signal }: { maxBytes: number; sha256?: string } & CallOptions,
    ): Promise<{ bytes: number; sha256: string }> {
      let lastWrong: string | undefined;
      return retrying(async () => {
        const temp = `${file}.${randomUUID()}.part`;
        try {
          const got = await writeCapped(
            await download(service, { method: 'GET', target: target(path), signal }),
            temp,
            maxBytes,
          );
          if (sha256 !== undefined && got.sha256 !== sha256.toLowerCase()) {
            const detail = `${path}: sha256 is ${got.sha256}, not ${sha256}`;
            if (got.sha256 === lastWrong) throw new AppError('asset_corrupt', { detail });
            lastWrong = got.sha256;
            throw new AppError('storage_failed', { detail });
          }
          await rename(temp, file);
          return got;
        } finally {
          await rm(temp, { force: true });
        }
      }, signal);
    },

    /** What stands directly in a directory (`''` is the root); nothing where there is no such directory. */
    async list(directory: string, { signal }: CallOptions = {}): Promise<StoredObject[]> {
      const below = directory === '' ? '' : `${directory}/`;
      const listing = directory === '' ? `${zone}/` : `${target(directory)}/`;
      let body: unknown;
      try {
        body = await retrying(() => call(service, { method: 'GET', target: listing, signal }), signal);
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') return [];
        throw error;
      }
      const parsed = listed.safeParse(body);
      if (!parsed.success) throw new AppError('storage_failed', { detail: `unexpected listing of ${directory}` });
      return parsed.data.map((item) => ({
        path: `${below}${item.ObjectName}`,
        isDirectory: item.IsDirectory,
        bytes: item.Length,
        sha256: item.Checksum?.toLowerCase() || undefined,
        // No zone in these times: they are UTC.
        changedAt: new Date(item.LastChanged.endsWith('Z') ? item.LastChanged : `${item.LastChanged}Z`),
      }));
    },

    /**
     * A file's facts, or `undefined` where there is none. Read from the listing of its directory: HEAD is not documented
     * (and was seen to answer 401), and DESCRIBE is a verb that proxies refuse.
     */
    async stat(path: string, { signal }: CallOptions = {}): Promise<StoredObject | undefined> {
      encodeStoragePath(path);
      const items = await client.list(path.slice(0, Math.max(0, path.lastIndexOf('/'))), { signal });
      return items.find((item) => item.path === path && !item.isDirectory);
    },

    /** Deletes one file; false where there was none. The path guard sees to it that it can never name a directory's contents. */
    async delete(path: string, { signal }: CallOptions = {}): Promise<boolean> {
      try {
        await retrying(() => call(service, { method: 'DELETE', target: target(path), signal }), signal);
        return true;
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') return false;
        throw error;
      }
    },
  };
  return client;
}

async function writeCapped(
  { bytes: announced, stream }: Download,
  file: string,
  maxBytes: number,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  const tooLarge = () => new AppError('source_too_large', { detail: `more than ${maxBytes} bytes` });
  if (announced !== undefined && announced > maxBytes) {
    stream.destroy();
    throw tooLarge();
  }
  await pipeline(
    stream,
    async function* (source: AsyncIterable<Uint8Array>) {
      for await (const chunk of source) {
        bytes += chunk.byteLength;
        if (bytes > maxBytes) throw tooLarge();
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(file, { flags: 'wx' }),
  );
  return { bytes, sha256: hash.digest('hex') };
}
