import { rm } from 'node:fs/promises';
import { Hono } from 'hono';
import { z } from 'zod';
import { VIDEO_MODEL_STATUS } from '../../lib/bunny/video-state.ts';
import type { Faults } from './faults.ts';
import {
  exchangeOver,
  faultMiddleware,
  neverAnswer,
  type Received,
  receiveBody,
  sameKey,
  waitQuietly,
} from './http.ts';
import type { SimContext, SimEnv } from './journal.ts';
import type { Library, Video } from './library.ts';
import { collectionModelOf, pageOf, resolutionsOf, videoModelOf } from './models.ts';
import type { Transcoder } from './transcoder.ts';
import type { Webhooks } from './webhooks.ts';

export interface StreamDeps {
  libraryId: number;
  streamKey: string;
  readOnlyKey: string;
  library: Library;
  transcoder: Transcoder;
  webhooks: Webhooks;
  faults: Faults;
  closing: AbortSignal;
}

type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 429 | 500 | 503;

/** StatusModel in the API's own casing. */
const status = (code: 200 | ErrorStatus, message: string) =>
  Response.json({ success: code === 200, message, statusCode: code }, { status: code });

/** Where an upload is answered before its webhooks are out (fault `early`), it waits for them no longer than this. */
const EARLY_LIMIT_MS = 5000;

const name = z.string().min(1).max(255);
const createBody = z.looseObject({ title: name, collectionId: z.string().nullish() });
const updateBody = z.looseObject({ title: name.nullish(), collectionId: z.string().nullish() });
const collectionBody = z.looseObject({ name });

/** `/library/{id}/…` of the Stream API, to the shapes of its OpenAPI document 1.6.8. */
export function createStreamRoutes(deps: StreamDeps): Hono<SimEnv> {
  const { library, transcoder, faults, libraryId, closing } = deps;
  const app = new Hono<SimEnv>();

  app.use(faultMiddleware(faults, closing, status));
  app.use('/:library/*', async (c, next) => {
    if (c.env.incoming.method === 'HEAD') return new Response(null, { status: 405 });
    const key = c.req.header('accesskey') ?? '';
    const reads = sameKey(key, deps.readOnlyKey);
    const writes = sameKey(key, deps.streamKey);
    if ((!reads && !writes) || c.req.param('library') !== String(libraryId)) {
      // Unlike everything else this comes in PascalCase.
      const Message = 'Authentication has been denied for this request.';
      return Response.json({ Success: false, Message, StatusCode: 401 }, { status: 401 });
    }
    if (!writes && c.req.method !== 'GET') return status(403, 'The request authorization failed');
    return next();
  });

  app.post('/:library/videos', async (c) => {
    const body = createBody.safeParse(await readJson(c));
    if (!body.success) return status(400, 'The title is required and takes at most 255 characters');
    const video = library.createVideo(body.data.title, body.data.collectionId ?? '');
    if (faults.strikes('acceptThenTimeout.create', `${video.guid} ${video.title}`)) {
      return neverAnswer(c, faults, closing);
    }
    return c.json(videoModelOf(video, libraryId, true));
  });

  app.get('/:library/videos', (c) => {
    const query = c.req.query();
    const search = query.search?.toLowerCase();
    if (search && faults.strikes('searchRefused', search))
      return status(400, 'Search is not available for this library');
    const visibleUntil = Date.now() - faults.listingDelayMs;
    const videos = [...library.videos.values()]
      .filter((video) => video.createdAt <= visibleUntil)
      .filter((video) => !search || video.title.toLowerCase().includes(search))
      .filter((video) => !query.collection || video.collectionId === query.collection)
      .sort(query.orderBy === 'title' ? (a, b) => a.title.localeCompare(b.title) : (a, b) => b.createdAt - a.createdAt);
    return c.json(pageOf(videos, query, (video) => videoModelOf(video, libraryId)));
  });

  app.get('/:library/videos/:guid', (c) => {
    const video = library.videos.get(c.req.param('guid'));
    return video ? c.json(videoModelOf(video, libraryId)) : new Response(null, { status: 404 });
  });

  app.get('/:library/videos/:guid/resolutions', (c) => {
    const video = library.videos.get(c.req.param('guid'));
    if (!video) return new Response(null, { status: 404 });
    return c.json({ success: true, message: 'OK', statusCode: 200, data: resolutionsOf(video, libraryId) });
  });

  app.put('/:library/videos/:guid', async (c) => {
    const guid = c.req.param('guid');
    const refusal = uploadRefusal(library, guid);
    if (refusal) return refusal;
    const received = await receiveBody(c, library.incoming).catch(() => undefined);
    // A connection that broke leaves the video as empty as it was.
    if (!received) return status(400, 'The request body could not be read');
    return landUpload(c, deps, guid, received);
  });

  app.post('/:library/videos/:guid', async (c) => {
    const video = library.videos.get(c.req.param('guid'));
    if (!video) return status(404, 'The requested video was not found');
    const body = updateBody.safeParse(await readJson(c));
    if (!body.success) return status(400, 'The request is not valid');
    video.title = body.data.title ?? video.title;
    video.collectionId = body.data.collectionId ?? video.collectionId;
    library.save(video);
    return status(200, 'OK');
  });

  app.delete('/:library/videos/:guid', async (c) => {
    if (!library.videos.has(c.req.param('guid'))) return status(404, 'The requested video was not found');
    await removeVideo(deps, c.req.param('guid'));
    return status(200, 'OK');
  });

  app.post('/:library/videos/:guid/reencode', async (c) => {
    const video = library.videos.get(c.req.param('guid'));
    if (!video) return status(404, 'The requested video was not found');
    if (video.originalSha256 === null) return status(400, 'Original file is missing');
    await transcoder.cancel(video.guid);
    transcoder.start(video);
    return c.json(videoModelOf(video, libraryId));
  });

  addCollectionRoutes(app, deps);
  return app;
}

function addCollectionRoutes(app: Hono<SimEnv>, deps: StreamDeps): void {
  const { library, libraryId } = deps;
  const missing = () => status(404, 'The requested collection was not found');

  app.get('/:library/collections', (c) => {
    const query = c.req.query();
    const search = query.search?.toLowerCase();
    const found = [...library.collections.values()]
      .filter((collection) => !search || collection.name.toLowerCase().includes(search))
      .sort((a, b) => b.createdAt - a.createdAt);
    return c.json(pageOf(found, query, (collection) => collectionModelOf(collection, library, libraryId)));
  });

  app.post('/:library/collections', async (c) => {
    const body = collectionBody.safeParse(await readJson(c));
    if (!body.success) return status(400, 'The name is required and takes at most 255 characters');
    return c.json(collectionModelOf(library.createCollection(body.data.name), library, libraryId));
  });

  app.get('/:library/collections/:guid', (c) => {
    const collection = library.collections.get(c.req.param('guid'));
    return collection ? c.json(collectionModelOf(collection, library, libraryId)) : new Response(null, { status: 404 });
  });

  app.post('/:library/collections/:guid', async (c) => {
    const collection = library.collections.get(c.req.param('guid'));
    if (!collection) return missing();
    const body = collectionBody.safeParse(await readJson(c));
    if (!body.success) return status(400, 'The name is required and takes at most 255 characters');
    library.saveCollection({ ...collection, name: body.data.name });
    return status(200, 'OK');
  });

  // With the collection go its videos.
  app.delete('/:library/collections/:guid', async (c) => {
    const guid = c.req.param('guid');
    if (!library.collections.has(guid)) return missing();
    library.deleteCollection(guid);
    for (const video of [...library.videos.values()]) {
      if (video.collectionId === guid) await removeVideo(deps, video.guid);
    }
    return status(200, 'OK');
  });
}

async function removeVideo({ library, transcoder }: StreamDeps, guid: string): Promise<void> {
  await transcoder.cancel(guid);
  library.deleteVideo(guid);
}

async function readJson(c: SimContext): Promise<unknown> {
  return c.req.json().catch(() => undefined);
}

/** Why a video takes no bytes, or `undefined` where it does. */
export function uploadRefusal(library: Library, guid: string): Response | undefined {
  const video = library.videos.get(guid);
  if (!video) return status(404, 'The requested video was not found');
  return video.status === VIDEO_MODEL_STATUS.Created
    ? undefined
    : status(400, 'The requested video was already uploaded');
}

/** Takes a whole file for a video's original, starts the transcode and answers, as the faults would have it. */
export async function landUpload(c: SimContext, deps: StreamDeps, guid: string, received: Received): Promise<Response> {
  const { library, transcoder, webhooks, faults, closing } = deps;
  // Two uploads may have raced: the first whole one counts.
  const refusal = uploadRefusal(library, guid);
  const video = library.videos.get(guid);
  if (refusal || !video) {
    await rm(received.file, { force: true });
    return refusal ?? status(404, 'The requested video was not found');
  }
  library.adoptOriginal(video, received.file, received.sha256);
  const subject = `${video.guid} ${video.title}`;
  if (faults.strikes('missingVideo', subject)) {
    await removeVideo(deps, guid);
    return status(200, 'OK');
  }
  const early = faults.strikes('webhooks.early', subject);
  transcoder.start(video);
  if (early)
    await Promise.race([settled(transcoder, webhooks, video), waitQuietly(EARLY_LIMIT_MS, exchangeOver(c), closing)]);
  if (faults.strikes('acceptThenTimeout.upload', subject)) return neverAnswer(c, faults, closing);
  return status(200, 'OK');
}

async function settled(transcoder: Transcoder, webhooks: Webhooks, video: Video): Promise<void> {
  await transcoder.finished(video.guid);
  await webhooks.drained(video.guid);
}
