import type PQueue from 'p-queue';
import type { StorageClient } from '../bunny/storage-client.ts';
import type { StreamClient } from '../bunny/stream-client.ts';
import { videoState } from '../bunny/video-state.ts';
import { sha256Hex } from '../domain/recipe.ts';
import { AppError, toAppError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { RENDERS_DIR } from './artefacts.ts';
import type { ArtefactCheck, ArtefactReport, StoredPage, VideoPage } from './contract.ts';
import { findVideo } from './publish.ts';
import { findStored } from './resume.ts';
import { fileName } from './stored-files.ts';
import { hashInTitle } from './video-title.ts';

/** A page of the library's videos, with what an owner of ours would be found by. */
export async function listVideos(
  stream: Pick<StreamClient, 'listPage'>,
  titlePrefix: string,
  asked: { page: number; perPage: number },
  signal: AbortSignal,
): Promise<VideoPage> {
  const { items, more } = await stream.listPage({ number: asked.page, itemsPerPage: asked.perPage, signal });
  const videos = items.map(videoState).map(({ guid, title, createdAt }) => ({
    ...{ guid, title },
    recipeHashPrefix: hashInTitle(titlePrefix, title),
    uploadedAt: createdAt?.toISOString() ?? null,
  }));
  return { videos, more };
}

/**
 * Deletes a video of ours; false where there is none. It is read again before: `conflict` where its title is not of
 * our making, whatever the caller thinks of it.
 */
export async function deleteVideo(
  stream: StreamClient,
  titlePrefix: string,
  guid: string,
  signal: AbortSignal,
): Promise<boolean> {
  const video = await findVideo(stream, guid, signal);
  if (!video) return false;
  if (hashInTitle(titlePrefix, video.title) === null) {
    throw new AppError('conflict', {
      sentence: 'The video was not made by this installation.',
      detail: `${guid} is called ${JSON.stringify(video.title)}, which does not begin with ${titlePrefix}`,
    });
  }
  return stream.delete(guid, { signal });
}

/** The recipe hashes that have a directory in the zone, in order, from behind `after` on. */
export async function listStored(
  storage: Pick<StorageClient, 'list'>,
  { after, limit }: { after: string; limit: number },
  signal: AbortSignal,
): Promise<StoredPage> {
  const objects = await storage.list(RENDERS_DIR, { signal });
  const hashes = objects
    .filter(({ isDirectory }) => isDirectory)
    .map(({ path }) => fileName(path))
    .filter((name) => sha256Hex.safeParse(name).success && name > after)
    .sort();
  return { recipeHashes: hashes.slice(0, limit), more: hashes.length > limit };
}

/**
 * Looks whether renders are stored whole. `listings` bounds how many directories are listed at a time, over all callers:
 * the zone refuses more than 5 (https://docs.bunny.net/storage/limits).
 */
export async function checkArtefacts(
  { storage, listings, log }: { storage: Pick<StorageClient, 'get' | 'list'>; listings: PQueue; log: Logger },
  { renders }: ArtefactCheck,
  signal: AbortSignal,
): Promise<ArtefactReport> {
  const look = async ({ recipeHash, masterSha256 }: ArtefactCheck['renders'][number]) => {
    try {
      return (await findStored(storage, recipeHash, masterSha256, signal)) ? 'whole' : 'broken';
    } catch (thrown) {
      const error = toAppError(thrown);
      if (signal.aborted) throw error;
      log.warn({ err: error, detail: error.detail, recipeHash }, 'storage could not be asked');
      return 'unknown';
    }
  };
  return { states: await listings.addAll(renders.map((render) => () => look(render))) };
}
