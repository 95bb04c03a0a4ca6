import type { StorageClient } from '../bunny/storage-client.ts';
import { AppError } from '../errors.ts';
import { rendersDir } from './artefacts.ts';

/** How many bytes a file of the render has in the zone; undefined where it is not there. */
export type SizeOf = (name: string) => Promise<number | undefined>;

/**
 * Lists what is stored of a render. A listing may lag behind what was stored a moment ago, so a file that it does not
 * show is asked for by name before it counts as missing.
 */
export async function storedFiles(
  storage: Pick<StorageClient, 'get' | 'list'>,
  recipeHash: string,
  signal: AbortSignal,
): Promise<SizeOf> {
  const objects = await storage.list(rendersDir(recipeHash), { signal });
  const listed = new Map(objects.map(({ path, bytes }) => [path, bytes]));
  return async (name) => {
    const path = `${rendersDir(recipeHash)}/${name}`;
    return listed.get(path) ?? sizeByName(storage, path, signal);
  };
}

async function sizeByName(
  storage: Pick<StorageClient, 'get'>,
  path: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  try {
    const { bytes, stream } = await storage.get(path, { signal });
    stream.destroy();
    return bytes;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** The file's name in the zone, from its path or its public address. */
export const fileName = (path: string) => path.slice(path.lastIndexOf('/') + 1);
