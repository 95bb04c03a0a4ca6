import type { StreamClient } from '../bunny/stream-client.ts';
import { type VideoState, videoState } from '../bunny/video-state.ts';
import { createVideo, findEmptyVideo, uploadVideo } from '../bunny/video-upload.ts';
import { AppError } from '../errors.ts';

/** Titles carry so much of the recipe hash: enough to be unique, short enough to be read in Bunny's own lists. */
const HASH_CHARS = 32;

export const videoTitle = (recipeHash: string) => `bakehouse ${recipeHash.slice(0, HASH_CHARS)}`;

export interface PublishRequest {
  recipeHash: string;
  /** A video an earlier attempt made for this very master. */
  existingGuid: string | undefined;
  collection: string | undefined;
  /** Brings the master to a local file; called only when its bytes have to go up. */
  master: () => Promise<string>;
  signal: AbortSignal;
  /** Called as soon as the video exists and before its bytes go up. */
  onVideo: (video: { guid: string; collectionId: string | null }) => void;
}

/**
 * Gets the master into exactly one video at Bunny Stream: one that an earlier attempt made is used wherever it still can
 * be, and its bytes are sent only where Bunny does not have them.
 */
export async function publishVideo(
  client: StreamClient,
  request: PublishRequest,
): Promise<{ guid: string; collectionId: string | null }> {
  const { signal } = request;
  const known = request.existingGuid ? await findVideo(client, request.existingGuid, signal) : undefined;
  if (known && known.state !== 'failed') {
    const video = { guid: known.guid, collectionId: known.collectionId ?? null };
    request.onVideo(video);
    if (known.state !== 'created' || (await upload(client, video.guid, request))) return video;
  }
  const fresh = await create(client, request);
  if (await upload(client, fresh.guid, request)) return fresh;
  throw new AppError('transcode_missing', { detail: `video ${fresh.guid} failed or vanished while being uploaded` });
}

/** A video's state in our words; undefined where Bunny knows no such video. */
export async function findVideo(
  client: StreamClient,
  guid: string,
  signal: AbortSignal | undefined,
): Promise<VideoState | undefined> {
  try {
    return videoState(await client.get(guid, { signal }));
  } catch (error) {
    if (error instanceof AppError && error.code === 'bunny_not_found') return undefined;
    throw error;
  }
}

async function create(client: StreamClient, { recipeHash, collection, signal, onVideo }: PublishRequest) {
  const input = { title: videoTitle(recipeHash), ...(collection !== undefined && { collectionId: collection }) };
  // An attempt that died between making its video and telling of it has left one, which nobody else would ever use.
  const left = await findEmptyVideo(client, input, signal).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'bunny_unavailable') return undefined;
    throw error;
  });
  const video = left ?? (await createVideo(client, input, { signal })).video;
  const made = { guid: video.guid, collectionId: video.collectionId || null };
  onVideo(made);
  return made;
}

/** False where the video cannot take the bytes any more, so that another one is needed. */
async function upload(client: StreamClient, guid: string, { master, signal }: PublishRequest): Promise<boolean> {
  const { outcome } = await uploadVideo(client, guid, await master(), { signal });
  return outcome !== 'new-video-needed';
}
