import { randomUUID } from 'node:crypto';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { VIDEO_MODEL_STATUS } from '../../lib/bunny/video-state.ts';
import { emptyFolder, readAllJson, writeWhole } from './disk.ts';

const message = z.object({
  timeStamp: z.string(),
  level: z.number(),
  issueCode: z.number(),
  message: z.string(),
  value: z.string(),
});

const videoSchema = z.object({
  guid: z.string(),
  title: z.string(),
  collectionId: z.string(),
  createdAt: z.number(),
  /** The API's enum, not the webhook's. */
  status: z.number(),
  /** Whole seconds. */
  length: z.number(),
  width: z.number(),
  height: z.number(),
  framerate: z.number(),
  rotation: z.number().nullable(),
  encodeProgress: z.number(),
  availableResolutions: z.array(z.string()),
  storageSize: z.number(),
  /** Lower-case hex; null until bytes have come. */
  originalSha256: z.string().nullable(),
  messages: z.array(message),
  /** Left at "transcoding" by a fault; a restart does not free it. */
  stuck: z.boolean(),
});
export type Video = z.infer<typeof videoSchema>;

const collectionSchema = z.object({ guid: z.string(), name: z.string(), createdAt: z.number() });
export type Collection = z.infer<typeof collectionSchema>;

/** The videos and collections of the one library, kept on disk; `videos` and `collections` are read only from outside. */
export class Library {
  readonly videos = new Map<string, Video>();
  readonly collections = new Map<string, Collection>();
  /** Uploads and renditions under way; emptied at every start. */
  readonly incoming: string;
  readonly #dir: string;

  constructor(dataDir: string) {
    this.#dir = dataDir;
    this.incoming = join(dataDir, 'incoming');
    emptyFolder(this.incoming);
    mkdirSync(join(dataDir, 'originals'), { recursive: true });
    mkdirSync(join(dataDir, 'media'), { recursive: true });
    for (const found of readAllJson(join(dataDir, 'videos'))) {
      const video = videoSchema.parse(found);
      this.videos.set(video.guid, video);
    }
    for (const found of readAllJson(join(dataDir, 'collections'))) {
      const collection = collectionSchema.parse(found);
      this.collections.set(collection.guid, collection);
    }
  }

  /** Where the uploaded file of a video is kept. */
  original(guid: string): string {
    return join(this.#dir, 'originals', guid);
  }

  /** What the CDN shows of a video. */
  media(guid: string): string {
    return join(this.#dir, 'media', guid);
  }

  createVideo(title: string, collectionId: string): Video {
    const video: Video = {
      guid: randomUUID(),
      title,
      collectionId,
      createdAt: Date.now(),
      status: VIDEO_MODEL_STATUS.Created,
      length: 0,
      width: 0,
      height: 0,
      framerate: 0,
      rotation: null,
      encodeProgress: 0,
      availableResolutions: [],
      storageSize: 0,
      originalSha256: null,
      messages: [],
      stuck: false,
    };
    this.videos.set(video.guid, video);
    this.save(video);
    return video;
  }

  /** To be called after every change of a video; does nothing for one that has been deleted meanwhile. */
  save(video: Video): void {
    if (this.videos.get(video.guid) === video) writeWhole(this.#file('videos', video.guid), JSON.stringify(video));
  }

  /** Takes a whole file, which moves, for the video's original. */
  adoptOriginal(video: Video, file: string, sha256: string): void {
    renameSync(file, this.original(video.guid));
    video.originalSha256 = sha256;
  }

  deleteVideo(guid: string): void {
    this.videos.delete(guid);
    rmSync(this.#file('videos', guid), { force: true });
    rmSync(this.original(guid), { force: true });
    rmSync(this.media(guid), { recursive: true, force: true });
  }

  createCollection(name: string): Collection {
    const collection = { guid: randomUUID(), name, createdAt: Date.now() };
    this.saveCollection(collection);
    return collection;
  }

  saveCollection(collection: Collection): void {
    this.collections.set(collection.guid, collection);
    writeWhole(this.#file('collections', collection.guid), JSON.stringify(collection));
  }

  deleteCollection(guid: string): void {
    this.collections.delete(guid);
    rmSync(this.#file('collections', guid), { force: true });
  }

  #file(kind: 'videos' | 'collections', guid: string): string {
    return join(this.#dir, kind, `${guid}.json`);
  }
}
