import type { StorageClient } from '../bunny/storage-client.ts';
import { AppError } from '../errors.ts';
import { manifestPath } from './artefacts.ts';
import { type Manifest, manifestSchema } from './manifest.ts';
import { fileName, storedFiles } from './stored-files.ts';

/** The manifest of an hour's video with a cue every second stays far below this. */
const MAX_MANIFEST_BYTES = 32 * 1024 * 1024;

/**
 * The manifest of an earlier bake, where the zone holds it and everything that it names, and its master is the one asked
 * for (any, where `masterSha256` is undefined: an attempt that died before it could tell has left it); undefined
 * otherwise. A zone that cannot be asked is an error, not an answer.
 */
export async function findStored(
  storage: Pick<StorageClient, 'get' | 'list'>,
  recipeHash: string,
  masterSha256: string | undefined,
  signal: AbortSignal,
): Promise<Manifest | undefined> {
  const manifest = await readManifest(storage, recipeHash, signal);
  if (manifest?.recipeHash !== recipeHash) return undefined;
  if (masterSha256 !== undefined && manifest.master.sha256 !== masterSha256) return undefined;
  const sizeOf = await storedFiles(storage, recipeHash, signal);
  const { master, poster, baselines, captions } = manifest;
  for (const { url, bytes } of [master, poster, ...baselines, ...(captions ? [captions] : [])]) {
    if ((await sizeOf(fileName(url))) !== bytes) return undefined;
  }
  return manifest;
}

async function readManifest(
  storage: Pick<StorageClient, 'get'>,
  recipeHash: string,
  signal: AbortSignal,
): Promise<Manifest | undefined> {
  try {
    const { stream } = await storage.get(manifestPath(recipeHash), { signal });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_MANIFEST_BYTES) return undefined;
      chunks.push(chunk);
    }
    return manifestSchema.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  } catch (error) {
    // What an older version wrote, or half a file, is as good as none: the bake replaces it.
    if (error instanceof AppError && error.code !== 'not_found') throw error;
    return undefined;
  }
}
