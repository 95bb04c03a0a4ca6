import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

/** Bunny's signature headers, version v1 (https://docs.bunny.net/stream/webhooks). */
const VERSION_HEADER = 'x-bunnystream-signature-version';
const ALGORITHM_HEADER = 'x-bunnystream-signature-algorithm';
const SIGNATURE_HEADER = 'x-bunnystream-signature';
const VERSION = 'v1';
const ALGORITHM = 'hmac-sha256';

export interface WebhookDelivery {
  /** Exactly the bytes that came. */
  rawBody: Uint8Array;
  headers: Headers;
  /** The library's read-only keys: one, or several while it is being replaced. */
  keys: readonly string[];
  /** Shared secret expected as `?token=` where Bunny sends no signature. */
  token?: string | undefined;
  /** The request's URL or its target, for `?token=`. */
  url?: string | undefined;
}

export type WebhookVerdict =
  | { ok: true; by: 'signature' | 'token' }
  | { ok: false; reason: 'bad-signature' | 'unknown-scheme' | 'bad-token' | 'unsigned' };

/**
 * Whether a delivery really comes from Bunny. A signature that is there must be right, whatever the token; only a
 * delivery without one may be vouched for by the token. With neither keys nor a token nothing passes. Neither proves
 * freshness: the same bytes can be sent again.
 */
export function verifyWebhook({ rawBody, headers, keys, token, url }: WebhookDelivery): WebhookVerdict {
  const signature = headers.get(SIGNATURE_HEADER);
  if (signature !== null && keys.length > 0) {
    if (headers.get(VERSION_HEADER) !== VERSION || headers.get(ALGORITHM_HEADER) !== ALGORITHM) {
      return { ok: false, reason: 'unknown-scheme' };
    }
    if (!/^[0-9a-f]{64}$/.test(signature)) return { ok: false, reason: 'bad-signature' };
    const given = Buffer.from(signature, 'hex');
    let matches = false;
    for (const key of keys) matches = timingSafeEqual(hmac(key, rawBody), given) || matches;
    return matches ? { ok: true, by: 'signature' } : { ok: false, reason: 'bad-signature' };
  }
  if (token && url !== undefined) {
    const given = new URL(url, 'http://localhost').searchParams.get('token') ?? '';
    return timingSafeEqual(digest(given), digest(token))
      ? { ok: true, by: 'token' }
      : { ok: false, reason: 'bad-token' };
  }
  return { ok: false, reason: 'unsigned' };
}

/** The headers Bunny would send with this body. */
export function signWebhook(key: string, rawBody: Uint8Array): Record<string, string> {
  return {
    'X-BunnyStream-Signature-Version': VERSION,
    'X-BunnyStream-Signature-Algorithm': ALGORITHM,
    'X-BunnyStream-Signature': hmac(key, rawBody).toString('hex'),
  };
}

const hmac = (key: string, body: Uint8Array) => createHmac('sha256', key).update(body).digest();
/** Equal lengths for the comparison, whatever was given. */
const digest = (text: string) => createHash('sha256').update(text).digest();

const webhookBody = z
  .looseObject({
    VideoLibraryId: z.number().int(),
    // Printable and 32 bits: what a column can hold.
    VideoGuid: z.string().regex(/^[!-~]{1,100}$/),
    Status: z.int32(),
    IsLiveStreamWebhook: z.boolean().optional().catch(undefined),
  })
  .transform((body) => ({
    libraryId: body.VideoLibraryId,
    guid: body.VideoGuid,
    /** The webhook's own enum: read it with `webhookStatus`. */
    status: body.Status,
    liveStream: body.IsLiveStreamWebhook ?? false,
  }));
export type WebhookEvent = z.output<typeof webhookBody>;

/** The event in a verified body, or `undefined` where it is not one. */
export function parseWebhook(rawBody: Uint8Array): WebhookEvent | undefined {
  try {
    return webhookBody.safeParse(JSON.parse(Buffer.from(rawBody).toString('utf8'))).data;
  } catch {
    return undefined;
  }
}
