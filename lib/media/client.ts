import { Readable } from 'node:stream';
import { z } from 'zod';
import { AppError, ERRORS, isErrorCode, toAppError } from '../errors.ts';
import { bodyOf, SENT_ONCE, startWatch, textOf, underWatch, type Watch } from '../http-watch.ts';
import {
  type ArtefactCheck,
  type ArtefactReport,
  type Asset,
  type AssetAnswer,
  type AssetKind,
  artefactReport,
  assetAnswer,
  type Capacity,
  type ComposeDone,
  type ComposeLine,
  type ComposeRequest,
  capacityAnswer,
  composeLine,
  type RebuildAnswer,
  type RebuildRequest,
  rebuildAnswer,
  type StoredPage,
  storedPage,
  type ValidationReport,
  type VideoPage,
  type VideoStatus,
  validationReport,
  videoDeletion,
  videoPage,
  videoStatus,
} from './contract.ts';
import { ndjsonLines } from './ndjson.ts';

export interface MediaClientOptions {
  baseUrl: string;
  token: string;
  /** How long a plain question (status, capacity) may take. Default 15 000. */
  timeoutMs?: number;
}

export interface ComposeOptions {
  /** Aborting it closes the connection, upon which the service stops the bake. */
  signal: AbortSignal;
  /** Given up when the service sends nothing for so long; it sends a line every few seconds. */
  silenceMs: number;
  onLine?: (line: ComposeLine) => void;
}

/** Nothing is computed for this answer: who does not give it at once has no business baking. */
const CAPACITY_MS = 2_000;
/** The service looks at a file for at most 240 s; undici waits for a first header for 300 s. */
const LOOK_MS = 280_000;

export interface AssetUpload {
  /** `platform` or `org:{id}`. */
  tier: string;
  kind: AssetKind;
  body: AsyncIterable<Uint8Array>;
}

export interface UploadAssetOptions {
  signal: AbortSignal;
  /** Given up when neither side moves a byte for so long. Default 280 000: the answer waits for a full decode. */
  silenceMs?: number;
}

/** An RFC 9457 problem, as the service answers it. */
const problem = z.looseObject({
  code: z.string(),
  detail: z.string().optional(),
  retryable: z.boolean().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

export type MediaClient = ReturnType<typeof createMediaClient>;

/**
 * The media service as its callers see it. Every method throws `AppError` only: what the service answered, in its own
 * code; `media_unreachable` where it never took the request up (it is not there, or refuses our token), `media_unavailable`
 * where it broke off, `media_silent` past a silence deadline, `media_protocol` for an
 * answer that is none, `media_busy` and `media_draining` with `retryAfterMs`, `aborted` when `signal` says so.
 */
export function createMediaClient(options: MediaClientOptions) {
  const base = options.baseUrl.replace(/\/+$/, '');
  const timeoutMs = options.timeoutMs ?? 15_000;

  const send = async (path: string, init: RequestInit, watch: Watch): Promise<Response> => {
    const headers = { ...init.headers, authorization: `Bearer ${options.token}` };
    const response = await fetch(`${base}${path}`, { ...SENT_ONCE, ...init, headers, signal: watch.signal }).catch(
      (cause: unknown) => {
        // An upload that breaks has been taken up, though no answer came.
        if (watch.signal.aborted || init.duplex !== undefined) throw cause;
        throw new AppError('media_unreachable', { detail: toAppError(cause).detail ?? '', cause });
      },
    );
    // Too late: the service must see that nobody reads on.
    if (watch.signal.aborted) await response.body?.cancel();
    watch.touch();
    if (!response.ok) throw await refusal(response, watch);
    return response;
  };

  /** Runs one exchange under a watch and gives every failure its name. */
  const exchange = async <T>(
    signal: AbortSignal | undefined,
    silenceMs: number,
    run: (watch: Watch) => Promise<T>,
  ): Promise<T> => {
    const watch = startWatch(signal, silenceMs);
    try {
      return await underWatch(watch, run(watch));
    } catch (error) {
      if (signal?.aborted) throw new AppError('aborted', { cause: error });
      if (watch.signal.aborted)
        throw new AppError('media_silent', { detail: `nothing for ${silenceMs} ms`, cause: error });
      if (error instanceof AppError) throw error;
      throw new AppError('media_unavailable', { detail: toAppError(error).detail ?? '', cause: error });
    } finally {
      watch.stop();
    }
  };

  const ask = <T>(schema: z.ZodType<T>, path: string, init: RequestInit, signal?: AbortSignal, silenceMs = timeoutMs) =>
    exchange(signal, silenceMs, async (watch) => parse(schema, await jsonOf(await send(path, init, watch), watch)));

  return {
    /**
     * Has a render baked and resolves to its last line, handing every line to `onLine` as it comes. Each attempt is a
     * new call; nothing is retried here.
     */
    composeRender: (request: ComposeRequest, { signal, silenceMs, onLine }: ComposeOptions): Promise<ComposeDone> =>
      exchange(signal, silenceMs, async (watch) => {
        const response = await send('/v1/exercises/compose', json('POST', request), watch);
        for await (const value of ndjsonLines(bodyOf(response, watch))) {
          const line = parse(composeLine, value);
          onLine?.(line);
          if (line.type === 'done') return line;
          if (line.type === 'error') throw errorOf(line);
        }
        throw new AppError('media_protocol', { detail: 'the answer ended without its last line' });
      }),

    videoStatus: (guid: string, signal?: AbortSignal): Promise<VideoStatus> =>
      ask(videoStatus, `/v1/exercises/videos/${encodeURIComponent(guid)}/status`, { method: 'GET' }, signal),

    /**
     * Streams a file up; it is hashed, looked at and stored on the way. A file that cannot be used is an answer too:
     * its `report` has errors and its `location` is null.
     */
    uploadAsset: (
      { tier, kind, body }: AssetUpload,
      { signal, silenceMs = LOOK_MS }: UploadAssetOptions,
    ): Promise<AssetAnswer> =>
      exchange(signal, silenceMs, async (watch) => {
        const path = `/v1/assets?${new URLSearchParams({ tier, kind })}`;
        const source = Readable.from(touching(body, watch), { objectMode: false });
        // Not left to fetch, which may have forgotten its signal.
        watch.signal.addEventListener('abort', () => source.destroy(), { once: true });
        const headers = { 'content-type': 'application/octet-stream' };
        try {
          const response = await send(path, { method: 'PUT', headers, body: source, duplex: 'half' }, watch);
          return parse(assetAnswer, await jsonOf(response, watch));
        } finally {
          source.destroy();
        }
      }),

    /** Looks at an asset that is stored already. */
    validate: (asset: Asset, kind: AssetKind, signal?: AbortSignal): Promise<ValidationReport> =>
      ask(validationReport, '/v1/exercises/validate', json('POST', { asset, kind }), signal, LOOK_MS),

    /** One page of the video library; it counts from 1. */
    listVideos: (asked: { page: number; perPage: number }, signal?: AbortSignal): Promise<VideoPage> =>
      ask(videoPage, `/v1/inventory/videos?page=${asked.page}&perPage=${asked.perPage}`, { method: 'GET' }, signal),

    /** False where there was none any more; `conflict` where its title says that it is not ours. */
    deleteVideo: async (guid: string, signal?: AbortSignal): Promise<boolean> =>
      (await ask(videoDeletion, `/v1/inventory/videos/${encodeURIComponent(guid)}`, { method: 'DELETE' }, signal))
        .deleted,

    /** The recipe hashes that storage holds something of, in order, from behind `after` on. */
    listStored: (asked: { after: string; limit: number }, signal?: AbortSignal): Promise<StoredPage> =>
      ask(storedPage, `/v1/inventory/renders?after=${asked.after}&limit=${asked.limit}`, { method: 'GET' }, signal),

    checkArtefacts: (check: ArtefactCheck, signal?: AbortSignal): Promise<ArtefactReport> =>
      ask(artefactReport, '/v1/inventory/renders/check', json('POST', check), signal, LOOK_MS),

    /** The service fetches the master and listens to all of it. */
    rebuildManifest: (request: RebuildRequest, signal?: AbortSignal): Promise<RebuildAnswer> =>
      ask(rebuildAnswer, '/v1/inventory/renders/rebuild', json('POST', request), signal, LOOK_MS),

    /** Each time over a new connection: through a load balancer that is how to see more than one instance. */
    capacity: (signal?: AbortSignal): Promise<Capacity> =>
      ask(capacityAnswer, '/capacity', { method: 'GET', headers: { connection: 'close' } }, signal, CAPACITY_MS),
  };
}

const json = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

async function jsonOf(response: Response, watch: Watch): Promise<unknown> {
  const text = await textOf(response, watch);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new AppError('media_protocol', { detail: `no JSON: ${text.slice(0, 200)}`, cause });
  }
}

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new AppError('media_protocol', { detail: z.prettifyError(parsed.error) });
}

/** An error as the service worded it; a code this side does not know keeps its sentence and its verdict. */
function errorOf(told: ComposeLine & { type: 'error' }): AppError {
  const code = isErrorCode(told.code) ? told.code : 'internal';
  const detail = [code === told.code ? '' : told.code, told.detail ?? ''].filter(Boolean).join(': ');
  return new AppError(code, {
    sentence: told.message,
    retryable: told.retryable,
    ...(detail && { detail }),
    ...(told.retryAfterMs !== undefined && { retryAfterMs: told.retryAfterMs }),
  });
}

async function refusal(response: Response, watch: Watch): Promise<AppError> {
  const text = await textOf(response, watch);
  if (response.status === 401 || response.status === 403) {
    return new AppError('media_unreachable', { detail: `media refuses our token: it answered ${response.status}` });
  }
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const wait = Number.isFinite(seconds) ? { retryAfterMs: seconds * 1000 } : {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const told = problem.safeParse(value);
  const detail = `answered ${response.status}: ${text.slice(0, 500)}`;
  if (told.success && isErrorCode(told.data.code)) {
    const { code, detail: sentence, errors, retryable } = told.data;
    return new AppError(code, {
      sentence: sentence ?? ERRORS[code].sentence,
      detail,
      ...(retryable !== undefined && { retryable }),
      ...(errors && { issues: errors }),
      ...wait,
    });
  }
  if (response.status === 429) return new AppError('media_busy', { detail, ...wait });
  if (response.status === 503) return new AppError('media_draining', { detail, ...wait });
  return new AppError(response.status >= 500 ? 'media_unavailable' : 'media_protocol', { detail });
}

async function* touching(source: AsyncIterable<Uint8Array>, watch: Watch): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    watch.touch();
    yield chunk;
  }
}
