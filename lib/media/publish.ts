import type { StreamClient } from '../bunny/stream-client.ts';
import { type VideoState, videoState } from '../bunny/video-state.ts';
import { createVideo, findByTitle, uploadVideo } from '../bunny/video-upload.ts';
import { AppError } from '../errors.ts';

export interface PublishRequest {
  /** As `videoTitle` makes it: an attempt that lost its video finds it by this. */
  title: string;
  masterSha256: string;
  /** A video an earlier attempt made for this very master. */
  existingGuid: string | undefined;
  /** An earlier video of this master was given up, for what Bunny made of it: only an empty one may be taken instead. */
  givenUp: boolean;
  collection: string | undefined;
  /** Brings the master to a local file; called only when its bytes have to go up. */
  master: () => Promise<string>;
  signal: AbortSignal;
  /** Called as soon as the video is known and before its bytes go up. */
  onVideo: (video: { guid: string; collectionId: string | null }) => void;
}

/**
 * Gets the master into exactly one video at Bunny Stream: one that an earlier attempt made is used wherever it still can
 * be, whether that attempt lived to tell of it or not, and the bytes are sent only where Bunny does not have them.
 */
export async function publishVideo(
  client: StreamClient,
  request: PublishRequest,
): Promise<{ guid: string; collectionId: string | null }> {
  for (const find of [findNoted, findUntold, create]) {
    const video = await find(client, request);
    if (!video) continue;
    const made = { guid: video.guid, collectionId: video.collectionId ?? null };
    request.onVideo(made);
    if (video.state !== 'created' || (await upload(client, video.guid, request))) return made;
  }
  throw new AppError('transcode_missing', { detail: 'a new video failed or vanished while being uploaded' });
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

/** The video that the caller knows of. */
async function findNoted(client: StreamClient, { existingGuid, signal }: PublishRequest) {
  const video = existingGuid === undefined ? undefined : await findVideo(client, existingGuid, signal);
  return video?.state === 'failed' ? undefined : video;
}

/**
 * What an attempt left that died between making its video and telling of it, which nobody else would ever use: a video
 * of our title with the very bytes of this master, else an empty one. A listing that cannot be had is no reason to stop.
 */
async function findUntold(client: StreamClient, request: PublishRequest) {
  const { masterSha256, givenUp, signal } = request;
  const isOurs = (video: VideoState) => !givenUp && video.state !== 'failed' && video.originalSha256 === masterSha256;
  return findByTitle(client, inputOf(request), isOurs, signal).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'bunny_unavailable') return undefined;
    throw error;
  });
}

async function create(client: StreamClient, request: PublishRequest) {
  return (await createVideo(client, inputOf(request), { signal: request.signal })).video;
}

const inputOf = ({ title, collection }: PublishRequest) => ({
  title,
  ...(collection !== undefined && { collectionId: collection }),
});

/** False where the video cannot take the bytes any more, so that another one is needed. */
async function upload(client: StreamClient, guid: string, { master, signal }: PublishRequest): Promise<boolean> {
  const { outcome } = await uploadVideo(client, guid, await master(), { signal });
  return outcome !== 'new-video-needed';
}
