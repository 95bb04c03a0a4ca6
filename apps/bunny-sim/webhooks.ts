import { randomBytes } from 'node:crypto';
import { WEBHOOK_STATUS } from '../../lib/bunny/video-state.ts';
import { signWebhook } from '../../lib/bunny/webhook.ts';
import type { Faults } from './faults.ts';
import { waitQuietly } from './http.ts';
import type { DeliveryEntry, Journal } from './journal.ts';

type HookStatus = (typeof WEBHOOK_STATUS)[keyof typeof WEBHOOK_STATUS];
const FINAL: readonly HookStatus[] = [WEBHOOK_STATUS.Finished, WEBHOOK_STATUS.Failed];

/** How long a receiver may take. Bunny's own limit is not documented. */
const DEADLINE_MS = 10_000;

export interface HookSubject {
  guid: string;
  title: string;
}

export interface WebhookOptions {
  /** Nothing is sent where it is not set. May carry `?token=`. */
  url: string | undefined;
  /** The library's read-only key. */
  key: string;
  libraryId: number;
  faults: Faults;
  journal: Journal;
  closing: AbortSignal;
}

/** Sends each video's webhooks one after the other, each once: Bunny was never seen to repeat one that failed. */
export class Webhooks {
  readonly #options: WebhookOptions;
  readonly #chains = new Map<string, Promise<void>>();
  readonly #held = new Map<string, HookStatus[]>();

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** Queues a webhook; returns at once. */
  emit(video: HookSubject, status: HookStatus): void {
    const { faults, url } = this.#options;
    const subject = `${video.guid} ${video.title}`;
    if (url === undefined || faults.strikes('webhooks.off', `${subject} status=${status}`)) return;
    if (status === WEBHOOK_STATUS.Queued && faults.strikes('webhooks.reordered', subject))
      this.#held.set(video.guid, []);
    const held = this.#held.get(video.guid);
    if (!held) {
      this.#queue(url, video, status);
      return;
    }
    held.push(status);
    if (!FINAL.includes(status)) return;
    this.#held.delete(video.guid);
    for (const each of held.reverse()) this.#queue(url, video, each);
  }

  /** Resolves when everything queued so far for this video has been delivered, or has failed. */
  async drained(guid: string): Promise<void> {
    await this.#chains.get(guid);
  }

  async allDrained(): Promise<void> {
    await Promise.all(this.#chains.values());
  }

  #queue(url: string, video: HookSubject, status: HookStatus): void {
    const due = Date.now() + this.#options.faults.webhookDelayMs;
    const before = this.#chains.get(video.guid) ?? Promise.resolve();
    const chain = before
      .then(() => this.#deliver(url, video, status, due))
      .finally(() => {
        if (this.#chains.get(video.guid) === chain) this.#chains.delete(video.guid);
      });
    this.#chains.set(video.guid, chain);
  }

  async #deliver(url: string, video: HookSubject, status: HookStatus, due: number): Promise<void> {
    const { faults, journal, closing, key } = this.#options;
    if (due > Date.now()) await waitQuietly(due - Date.now(), closing);
    if (closing.aborted) return;
    const subject = `${video.guid} ${video.title} status=${status}`;
    if (status === WEBHOOK_STATUS.Queued && faults.strikes('webhooks.forged', subject)) {
      await this.#post(url, video.guid, WEBHOOK_STATUS.Finished, 'forged', randomBytes(16).toString('hex'));
    }
    if (faults.strikes('webhooks.lost', subject)) {
      const at = new Date().toISOString();
      journal.delivery({ at, guid: video.guid, status, kind: 'lost', answer: undefined, ms: 0 });
      return;
    }
    await this.#post(url, video.guid, status, 'normal', key);
    if (faults.strikes('webhooks.doubled', subject)) await this.#post(url, video.guid, status, 'doubled', key);
  }

  async #post(url: string, guid: string, status: HookStatus, kind: DeliveryEntry['kind'], key: string): Promise<void> {
    const { libraryId, journal, closing } = this.#options;
    const fields = { IsLiveStreamWebhook: false, VideoLibraryId: libraryId, VideoGuid: guid, Status: status };
    const body = Buffer.from(JSON.stringify(fields));
    const started = Date.now();
    let answer: number | string;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json; charset=utf-8', ...signWebhook(key, body) },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([closing, AbortSignal.timeout(DEADLINE_MS)]),
      });
      answer = response.status;
      await response.body?.cancel();
    } catch (error) {
      answer = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    }
    journal.delivery({ at: new Date(started).toISOString(), guid, status, kind, answer, ms: Date.now() - started });
  }
}
