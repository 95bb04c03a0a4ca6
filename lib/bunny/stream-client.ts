import type { z } from 'zod';
import { AppError } from '../errors.ts';
import { type CallOptions, call, retrying, type Service, type UploadBody } from './http.ts';
import {
  type CollectionModel,
  collectionModel,
  page,
  resolutionsAnswer,
  type VideoModel,
  videoModel,
} from './models.ts';
import { uploadByTus } from './tus.ts';

export interface StreamClientOptions {
  /** `https://video.bunnycdn.com`, or a stand-in. */
  baseUrl: string;
  libraryId: number | string;
  /** The library's own read/write key; the account key does not work here, the read-only key may only read. */
  apiKey: string;
  /** How long a call, or an upload on which no byte moves, may stay silent. Default 30 000. */
  timeoutMs?: number;
  /** Bytes per request of a resumable upload; default 64 MiB. */
  chunkBytes?: number;
}

/** A name's limit at Bunny (Stream OpenAPI 1.6.8): required and at most 255 characters. */
const LONGEST_NAME = 255;
/** The most that a list gives at once. */
const ITEMS_PER_PAGE = 1000;

export interface ListOptions extends CallOptions {
  /** A case-insensitive part of the title. Bunny may refuse to search at all: `bunny_refused`. */
  search?: string;
  collectionId?: string;
}

/** `number` counts from 1; the list clamps `itemsPerPage` to 10–1000. */
interface PageAsked {
  number: number;
  itemsPerPage: number;
}

export type StreamClient = ReturnType<typeof createStreamClient>;

/**
 * The Bunny Stream API of one library. Every method throws `AppError` only: `bunny_unauthorized` for 401 and 403,
 * `bunny_not_found` for 404, `bunny_unavailable` (retryable) for 408, 429, 5xx, a broken or a silent connection,
 * `bunny_refused` for other refusals, `aborted` when the signal says so. Calls that are safe to repeat are tried 3 times;
 * `create`, `upload` and `createCollection` once: see `createVideo` and `uploadVideo` for how to make those sure.
 */
export function createStreamClient(options: StreamClientOptions) {
  const service: Service = {
    name: 'Bunny Stream',
    baseUrl: options.baseUrl.replace(/\/+$/, ''),
    accessKey: options.apiKey,
    silenceMs: options.timeoutMs ?? 30_000,
    codes: { notFound: 'bunny_not_found', unavailable: 'bunny_unavailable', refused: 'bunny_refused' },
  };
  const library = `/library/${encodeURIComponent(String(options.libraryId))}`;
  const video = (guid: string) => `${library}/videos/${encodeURIComponent(guid)}`;
  const headers = { Accept: 'application/json' };

  const get = async (target: string, signal: AbortSignal | undefined) =>
    retrying(() => call(service, { method: 'GET', target, headers, signal }), signal);

  const post = async (target: string, body: unknown, signal: AbortSignal | undefined) =>
    call(service, {
      method: 'POST',
      target,
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
      signal,
    });

  const listPage = async <T>(
    path: string,
    { number, itemsPerPage, query = {} }: PageAsked & { query?: Record<string, string | undefined> },
    item: z.ZodType<T>,
    signal: AbortSignal | undefined,
  ): Promise<{ items: T[]; more: boolean }> => {
    const params = new URLSearchParams({ page: String(number), itemsPerPage: String(itemsPerPage), orderBy: 'date' });
    for (const [key, value] of Object.entries(query)) if (value !== undefined) params.set(key, value);
    const found = expect(page, await get(`${path}?${params}`, signal), path);
    const parsed = found.items.map((candidate) => item.safeParse(candidate));
    return {
      items: parsed.flatMap(({ success, data }) => (success ? [data] : [])),
      more: found.items.length > 0 && number * found.itemsPerPage < found.totalItems,
    };
  };

  async function* listAll<T extends { guid: string }>(
    path: string,
    query: Record<string, string | undefined>,
    item: z.ZodType<T>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T> {
    const seen = new Set<string>();
    for (let number = 1, more = true; more; number += 1) {
      const found = await listPage(path, { query, number, itemsPerPage: ITEMS_PER_PAGE }, item, signal);
      for (const each of found.items) {
        if (seen.has(each.guid)) continue;
        seen.add(each.guid);
        yield each;
      }
      more = found.more;
    }
  }

  const client = {
    /** Makes an empty video. Not idempotent: after `bunny_unavailable` it may exist all the same. */
    async create(input: { title: string; collectionId?: string }, { signal }: CallOptions = {}): Promise<VideoModel> {
      assertName(input.title);
      return expect(videoModel, await post(`${library}/videos`, input, signal), 'create');
    },

    /** Sends the file of a video, once. A video that has its bytes already answers `bunny_refused`. */
    async upload(guid: string, body: UploadBody, { signal }: CallOptions = {}): Promise<void> {
      await call(service, {
        method: 'PUT',
        target: video(guid),
        headers: { ...headers, 'Content-Type': 'application/octet-stream' },
        body,
        signal,
      });
    },

    /** As `upload`, but in chunks, each taken up where the last one broke: for large files and poor connections. */
    async uploadResumable(guid: string, file: string, { signal }: CallOptions = {}): Promise<void> {
      const { title } = await client.get(guid, { signal });
      const { libraryId, apiKey, chunkBytes } = options;
      const { baseUrl, silenceMs } = service;
      const tus = { baseUrl, libraryId, apiKey, silenceMs, ...(chunkBytes !== undefined && { chunkBytes }) };
      await uploadByTus(tus, { guid, title }, file, { signal });
    },

    async get(guid: string, { signal }: CallOptions = {}): Promise<VideoModel> {
      return expect(videoModel, await get(video(guid), signal), 'get');
    },

    /**
     * All videos, every page, each once. Pages are numbered, so a video deleted meanwhile can hide another: a sweep must
     * not take absence here for absence, but `get` the video.
     */
    list({ search, collectionId, signal }: ListOptions = {}): AsyncGenerator<VideoModel> {
      return listAll(`${library}/videos`, { search, collection: collectionId }, videoModel, signal);
    },

    /**
     * One page of all videos, the newest first, and whether there are more behind it; for whoever cannot hold them all.
     * Pages shift: a video made meanwhile pushes the last one of a page onto the next, one deleted hides another.
     */
    listPage({
      number,
      itemsPerPage,
      signal,
    }: PageAsked & CallOptions): Promise<{ items: VideoModel[]; more: boolean }> {
      return listPage(`${library}/videos`, { number, itemsPerPage }, videoModel, signal);
    },

    /** `collectionId` left out is unchanged, `""` takes the video out of its collection. */
    async update(
      guid: string,
      changes: { title?: string; collectionId?: string },
      { signal }: CallOptions = {},
    ): Promise<void> {
      if (changes.title !== undefined) assertName(changes.title);
      await retrying(() => post(video(guid), changes, signal), signal);
    },

    /** False where there was no such video. A deleted video may still play for a while. */
    async delete(guid: string, { signal }: CallOptions = {}): Promise<boolean> {
      return gone(retrying(() => call(service, { method: 'DELETE', target: video(guid), headers, signal }), signal));
    },

    /** Transcodes again from the kept original; `bunny_refused` where that was not kept. */
    async reencode(guid: string, { signal }: CallOptions = {}): Promise<VideoModel> {
      return expect(videoModel, await post(`${video(guid)}/reencode`, {}, signal), 'reencode');
    },

    /** What can be played: HLS rungs, and progressive MP4s with their file names. */
    async resolutions(guid: string, { signal }: CallOptions = {}) {
      const { data } = expect(resolutionsAnswer, await get(`${video(guid)}/resolutions`, signal), 'resolutions');
      return {
        hls: data.availableResolutions,
        mp4: data.mp4Resolutions.map(({ resolution, path }) => ({ resolution, path: path ?? undefined })),
      };
    },

    collections({ search, signal }: { search?: string } & CallOptions = {}): AsyncGenerator<CollectionModel> {
      return listAll(`${library}/collections`, { search }, collectionModel, signal);
    },

    async createCollection(name: string, { signal }: CallOptions = {}): Promise<CollectionModel> {
      assertName(name);
      return expect(collectionModel, await post(`${library}/collections`, { name }, signal), 'create collection');
    },

    /**
     * The collection of exactly this name, made where it is missing. Names are not unique at Bunny: where two callers
     * raced, all settle on the one with the lowest guid.
     */
    async ensureCollection(name: string, { signal }: CallOptions = {}): Promise<CollectionModel> {
      const lowest = async () => {
        const found: CollectionModel[] = [];
        for await (const each of client.collections({ search: name, signal })) if (each.name === name) found.push(each);
        return found.sort((a, b) => (a.guid < b.guid ? -1 : 1))[0];
      };
      const existing = await lowest();
      if (existing) return existing;
      const created = await client.createCollection(name, { signal });
      return (await lowest()) ?? created;
    },

    /** False where there was none. Deletes every video in it. */
    async deleteCollection(guid: string, { signal }: CallOptions = {}): Promise<boolean> {
      const target = `${library}/collections/${encodeURIComponent(guid)}`;
      return gone(retrying(() => call(service, { method: 'DELETE', target, headers, signal }), signal));
    },
  };
  return client;
}

function assertName(name: string): void {
  if (name.length === 0 || name.length > LONGEST_NAME) {
    throw new AppError('bunny_refused', {
      detail: `a name of ${name.length} characters; 1 to ${LONGEST_NAME} are allowed`,
    });
  }
}

async function gone(deletion: Promise<unknown>): Promise<boolean> {
  try {
    await deletion;
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'bunny_not_found') return false;
    throw error;
  }
}

/** An answer that says success but is not the promised shape is as good as none: someone in between made it up. */
function expect<T extends z.ZodType>(schema: T, body: unknown, what: string): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new AppError('bunny_unavailable', {
    detail: `Bunny Stream ${what}: unexpected answer: ${parsed.error.issues.map((i) => `${i.path.join('.')} ${i.message}`).join('; ')}`,
  });
}
