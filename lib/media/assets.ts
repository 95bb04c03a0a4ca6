import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { realpath, rm } from 'node:fs/promises';
import { isAbsolute, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { StorageClient } from '../bunny/storage-client.ts';
import { AppError } from '../errors.ts';
import type { Asset } from './contract.ts';
import type { DiskCache } from './disk-cache.ts';

export interface AssetSource {
  cache: DiskCache;
  storage: Pick<StorageClient, 'getToFile'>;
  maxBytes: number;
  /** Files below this folder may be named as `file:` locations; none where undefined. */
  fileRoot: string | undefined;
}

const ZONE = 'zone:';

/**
 * Puts an asset at `target`: fetched once, its SHA-256 verified, kept in the disk cache. Throws `asset_unavailable`,
 * `asset_corrupt`, `source_too_large`, or what the storage client throws.
 */
export async function fetchAsset(
  { cache, storage, maxBytes, fileRoot }: AssetSource,
  asset: Asset,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  await cache.fetch([{ key: asset.sha256, target }], signal, async ([path = ''], flightSignal) => {
    if (asset.location.startsWith(ZONE)) {
      const object = asset.location.slice(ZONE.length);
      await fromZone(storage, object, path, { maxBytes, sha256: asset.sha256, signal: flightSignal });
    } else {
      const file = await insideRoot(asset.location, fileRoot);
      const got = await copyHashed(createReadStream(file), path, { maxBytes, signal: flightSignal });
      if (got.sha256 !== asset.sha256) throw new AppError('asset_corrupt', { detail: `${file}: ${got.sha256}` });
    }
  });
}

async function fromZone(
  storage: AssetSource['storage'],
  object: string,
  path: string,
  options: { maxBytes: number; sha256: string; signal: AbortSignal },
): Promise<void> {
  try {
    await storage.getToFile(object, path, options);
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') {
      throw new AppError('asset_unavailable', { detail: `${object} is not in the storage zone`, cause: error });
    }
    throw error;
  }
}

async function insideRoot(location: string, root: string | undefined): Promise<string> {
  const unavailable = (detail: string) => new AppError('asset_unavailable', { detail, retryable: false });
  if (root === undefined) throw unavailable('local files are switched off');
  let file: string;
  try {
    file = await realpath(fileURLToPath(location));
  } catch (error) {
    throw new AppError('asset_unavailable', { detail: location, cause: error });
  }
  const below = relative(await realpath(root), file);
  if (below.split(sep)[0] === '..' || isAbsolute(below)) throw unavailable(`${location} lies outside of the root`);
  return file;
}

/** Writes a stream to a new file, hashing it on the way; whatever ends it early also removes the file. */
export async function copyHashed(
  source: AsyncIterable<Uint8Array>,
  path: string,
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  const watch = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) throw new AppError('source_too_large', { detail: `more than ${maxBytes} bytes` });
      hash.update(chunk);
      yield chunk;
    }
  };
  try {
    await pipeline(source, watch, createWriteStream(path, { flags: 'wx' }), { signal });
  } catch (error) {
    await rm(path, { force: true });
    if (signal.aborted) throw new AppError('aborted', { cause: error });
    throw error;
  }
  return { sha256: hash.digest('hex'), bytes };
}
