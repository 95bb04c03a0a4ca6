import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import { VIDEO_MODEL_STATUS, WEBHOOK_STATUS } from '../../lib/bunny/video-state.ts';
import { toAppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Faults } from './faults.ts';
import type { Examine, Source } from './ladder.ts';
import type { Library, Video } from './library.ts';
import type { Webhooks } from './webhooks.ts';

/** Two enums: 3 and 4 mean other things here and there. */
const API = VIDEO_MODEL_STATUS;
const HOOK = WEBHOOK_STATUS;

const UNDER_WAY: readonly number[] = [API.Uploaded, API.Processing, API.Transcoding];

/** Severity 2 Warning with issue 2 TranscodingWarnings, severity 3 Error with issue 7 OriginalCorrupted: as measured. */
const WARNED = { level: 2, issueCode: 2 } as const;
const CORRUPT = { level: 3, issueCode: 7 } as const;

export interface TranscoderOptions {
  library: Library;
  examine: Examine;
  webhooks: Webhooks;
  faults: Faults;
  concurrency: number;
  log: Logger;
}

interface Run {
  controller: AbortController;
  running: boolean;
  done: Promise<void>;
}

/**
 * Leads each uploaded video from "uploaded" to its end. The API's statuses go 1 → 2 → 3 → 4 and the webhooks 0, 1, 1, 2,
 * 4, 4, 3, as measured on a live account; for bytes that are no video it is 1 → 2 → 5 and 0, 5.
 */
export class Transcoder {
  readonly #options: TranscoderOptions;
  readonly #queue: PQueue;
  readonly #runs = new Map<string, Run>();

  constructor(options: TranscoderOptions) {
    this.#options = options;
    this.#queue = new PQueue({ concurrency: options.concurrency });
  }

  /** Queues a video whose original is in place. */
  start(video: Video): void {
    const { library, webhooks, log } = this.#options;
    Object.assign(video, {
      status: API.Uploaded,
      length: 0,
      encodeProgress: 0,
      availableResolutions: [],
      storageSize: 0,
      messages: [],
      stuck: false,
    } satisfies Partial<Video>);
    library.save(video);
    webhooks.emit(video, HOOK.Queued);
    const run: Run = { controller: new AbortController(), running: false, done: Promise.resolve() };
    const { signal } = run.controller;
    this.#runs.set(video.guid, run);
    // The queue must not be told of the signal: it would free the slot while the processes still run.
    run.done = this.#queue
      .add(async () => {
        run.running = true;
        if (!signal.aborted) await this.#transcode(video, signal);
      })
      .catch((error: unknown) => {
        if (signal.aborted) return;
        log.warn({ err: error, guid: video.guid }, 'a video could not be transcoded');
        this.#fail(video, 'The video could not be transcoded', toAppError(error).detail ?? String(error));
      })
      .finally(() => {
        if (this.#runs.get(video.guid) === run) this.#runs.delete(video.guid);
      });
  }

  /** Takes up what a stop of the simulator interrupted. */
  resume(): void {
    const { library } = this.#options;
    for (const video of library.videos.values()) {
      if (video.stuck || !UNDER_WAY.includes(video.status)) continue;
      this.start(video);
    }
  }

  /** Stops work on a video; resolves when its processes are gone. */
  async cancel(guid: string): Promise<void> {
    const run = this.#runs.get(guid);
    run?.controller.abort();
    if (run?.running) await run.done;
  }

  /** Resolves when no work on this video is left. */
  async finished(guid: string): Promise<void> {
    await this.#runs.get(guid)?.done;
  }

  /** Stops all work; what was under way is resumed at the next start. */
  async close(): Promise<void> {
    await Promise.all([...this.#runs.keys()].map((guid) => this.cancel(guid)));
  }

  async #transcode(video: Video, signal: AbortSignal): Promise<void> {
    const { library, examine, webhooks, faults } = this.#options;
    const subject = `${video.guid} ${video.title}`;
    video.status = API.Processing;
    library.save(video);
    const source = await examine(library.original(video.guid), signal);
    signal.throwIfAborted();
    if (!source) {
      video.encodeProgress = 5;
      this.#fail(video, 'The original file is corrupted', 'no decodable video stream');
      return;
    }
    webhooks.emit(video, HOOK.Processing);
    webhooks.emit(video, HOOK.Processing);
    const whole = source.durationSeconds;
    const seconds = faults.strikes('truncatedFinish', subject) ? whole / 2 : whole;
    Object.assign(video, {
      status: API.Transcoding,
      length: Math.floor(seconds),
      width: source.width,
      height: source.height,
      framerate: source.framerate,
      rotation: source.rotation === 0 ? null : source.rotation,
      encodeProgress: 5,
    } satisfies Partial<Video>);
    video.stuck = faults.strikes('stuckTranscode', subject);
    library.save(video);
    webhooks.emit(video, HOOK.Encoding);
    if (video.stuck) return;
    await this.#makeLadder(video, source, seconds < whole ? seconds : undefined, signal);
    signal.throwIfAborted();
    Object.assign(video, { status: API.Finished, encodeProgress: 100 } satisfies Partial<Video>);
    library.save(video);
    webhooks.emit(video, HOOK.Finished);
    // Shows a moment later than the status, as at Bunny.
    video.storageSize = await sizeOf(library.media(video.guid));
    library.save(video);
  }

  async #makeLadder(video: Video, source: Source, limit: number | undefined, signal: AbortSignal): Promise<void> {
    const { library, webhooks } = this.#options;
    const work = await mkdtemp(join(library.incoming, 'ladder-'));
    try {
      await rm(library.media(video.guid), { recursive: true, force: true });
      let madeSeconds = 0;
      const complaints: string[] = [];
      for await (const rung of source.make({
        work,
        target: library.media(video.guid),
        limitSeconds: limit,
        signal,
        onProgress: (fraction) => {
          video.encodeProgress = 5 + Math.floor(94 * fraction);
        },
      })) {
        signal.throwIfAborted();
        video.availableResolutions = [...video.availableResolutions, rung.name];
        madeSeconds = Math.max(madeSeconds, rung.seconds);
        if (rung.complaint) complaints.push(rung.complaint);
        library.save(video);
        if (video.availableResolutions.length === 1) webhooks.emit(video, HOOK.ResolutionFinished);
      }
      webhooks.emit(video, HOOK.ResolutionFinished);
      const expected = limit ?? source.durationSeconds;
      if (complaints.length > 0 || madeSeconds < expected - Math.max(0.5, expected * 0.02)) {
        const value = complaints.join('\n') || 'The source ended early';
        this.#note(video, WARNED, 'Transcoding finished with warnings', value);
      }
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  #fail(video: Video, message: string, value: string): void {
    this.#note(video, CORRUPT, message, value);
    video.status = API.Error;
    this.#options.library.save(video);
    this.#options.webhooks.emit(video, HOOK.Failed);
  }

  /** Bunny cuts `value` at 255 characters. */
  #note(video: Video, kind: typeof WARNED | typeof CORRUPT, message: string, value: string): void {
    const timeStamp = new Date().toISOString().slice(0, -1);
    video.messages = [...video.messages, { timeStamp, ...kind, message, value: value.slice(0, 255) }];
  }
}

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}
