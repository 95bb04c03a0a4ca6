import { stat } from 'node:fs/promises';
import { AppError } from '../errors.ts';
import { backOff, type CallOptions, TRIES, type UploadBody, worthRetrying } from './http.ts';
import type { VideoModel } from './models.ts';
import type { StreamClient } from './stream-client.ts';
import { type VideoState, videoState } from './video-state.ts';

/**
 * Makes an empty video of this title and survives a create that was accepted but whose answer was lost: before creating
 * again, an empty video of exactly this title is looked for, and taken (`found`). Titles must therefore be unique to the
 * purpose: use the recipe hash. Throws what `StreamClient.create` throws; after `bunny_unavailable` an orphan may remain.
 */
export async function createVideo(
  client: StreamClient,
  input: { title: string; collectionId?: string },
  { signal }: CallOptions = {},
): Promise<{ video: VideoState; found: boolean }> {
  for (let failed = 1; ; failed += 1) {
    try {
      return { video: videoState(await client.create(input, { signal })), found: false };
    } catch (error) {
      if (!worthRetrying(error)) throw error;
      // The wait also lets a listing that lags behind catch up.
      await backOff(failed, error, signal);
      const video = await findByTitle(client, input, () => false, signal);
      if (video) return { video, found: true };
      if (failed >= TRIES) throw error;
    }
  }
}

/**
 * The first video of exactly this title that `accept` takes; where none is taken, the first empty one. Walks through the
 * library where it cannot be searched.
 */
export async function findByTitle(
  client: StreamClient,
  { title, collectionId }: { title: string; collectionId?: string },
  accept: (video: VideoState) => boolean,
  signal: AbortSignal | undefined,
): Promise<VideoState | undefined> {
  const within = { ...(collectionId !== undefined && { collectionId }), signal };
  const first = async (videos: AsyncGenerator<VideoModel>) => {
    let empty: VideoState | undefined;
    for await (const model of videos) {
      if (model.title !== title) continue;
      const video = videoState(model);
      if (accept(video)) return video;
      if (video.state === 'created') empty ??= video;
    }
    return empty;
  };
  try {
    return await first(client.list({ ...within, search: title }));
  } catch (error) {
    // 400 "Search is not available for this library": walk through all of it then.
    if (!(error instanceof AppError) || error.code !== 'bunny_refused') throw error;
    return first(client.list(within));
  }
}

/** "For files over 2 GB", says Bunny (https://docs.bunny.net/stream/http-api). */
const RESUMABLE_ABOVE_BYTES = 2_000_000_000;

export type UploadOutcome =
  /** This call sent the bytes and Bunny confirmed. */
  | { outcome: 'uploaded' }
  /** Bunny holds the bytes already: an earlier upload, or this one whose answer was lost. */
  | { outcome: 'already-uploaded'; video: VideoState }
  /** This guid can take no upload any more: `video` failed, or is not there (`undefined`). */
  | { outcome: 'new-video-needed'; video: VideoState | undefined };

/**
 * Brings the bytes into an existing video, whatever became of earlier tries. Where a PUT fails or is refused ("already
 * uploaded"), Bunny's own state of the video decides: still empty → sent again, under way or done → success, failed or
 * missing → the caller needs a new video. A file above `resumableAboveBytes` goes up in chunks. A body that can be read
 * only once is sent once.
 */
export async function uploadVideo(
  client: StreamClient,
  guid: string,
  body: UploadBody,
  { signal, resumableAboveBytes = RESUMABLE_ABOVE_BYTES }: { resumableAboveBytes?: number } & CallOptions = {},
): Promise<UploadOutcome> {
  const send = async () => {
    if (typeof body === 'string' && (await stat(body)).size > resumableAboveBytes) {
      await client.uploadResumable(guid, body, { signal });
    } else await client.upload(guid, body, { signal });
  };
  const tries = typeof body === 'string' || body instanceof Uint8Array ? TRIES : 1;
  for (let failed = 1; ; failed += 1) {
    try {
      await send();
      return { outcome: 'uploaded' };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'bunny_not_found') return { outcome: 'new-video-needed', video: undefined };
      if (error.code !== 'bunny_refused' && !worthRetrying(error)) throw error;
      // Bunny needs a moment (about 0.2 s measured) until bytes that have landed show in the status.
      await backOff(failed, error, signal);
      const video = await stateOrMissing(client, guid, signal);
      if (video === undefined || video.state === 'failed') return { outcome: 'new-video-needed', video };
      if (video.state !== 'created') return { outcome: 'already-uploaded', video };
      if (failed >= tries) throw error;
    }
  }
}

async function stateOrMissing(client: StreamClient, guid: string, signal: AbortSignal | undefined) {
  try {
    return videoState(await client.get(guid, { signal }));
  } catch (error) {
    if (error instanceof AppError && error.code === 'bunny_not_found') return undefined;
    throw error;
  }
}
