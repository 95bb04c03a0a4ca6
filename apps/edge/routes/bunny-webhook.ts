import { z } from '@hono/zod-openapi';
import { bodyLimit } from 'hono/body-limit';
import { parseWebhook, verifyWebhook } from '../../../lib/bunny/webhook.ts';
import { storeWebhookEvent } from '../../../lib/db/webhooks.ts';
import { AppError } from '../../../lib/errors.ts';
import { announceWebhook } from '../../../lib/queue/mirror.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, json } from '../openapi.ts';
import { operation } from '../operation.ts';
import { refuseBody } from '../problem.ts';
import { createRouter } from '../router.ts';

/** Bunny sends some 120 bytes. */
const MAX_BODY_BYTES = 64 * 1024;

const webhook = operation({
  method: 'post',
  path: '/webhooks/bunnystream',
  operationId: 'receiveBunnyWebhook',
  tags: ['Bunny'],
  summary: 'Bunny Stream tells of a video',
  description:
    'Signed with the library’s read-only key (`X-BunnyStream-Signature`, HMAC-SHA256 over the raw body), or called with ' +
    '`?token=`. Stored before it is answered, applied afterwards; the same delivery may come any number of times.',
  middleware: bodyLimit({ maxSize: MAX_BODY_BYTES, onError: refuseBody }),
  request: {
    query: z.object({
      // Anything passes here: what comes before the signature is checked gets no answer but 401.
      token: z
        .unknown()
        .optional()
        .openapi({ type: 'string', description: 'The shared secret, where it is not signed.', example: 's3cret' }),
    }),
    body: {
      required: true,
      content: {
        'application/json': {
          schema: { type: 'object' as const },
          example: examples.webhook,
        },
      },
    },
  },
  responses: {
    200: json(z.object({ id }), 'Stored.', { id: examples.ids.delivery }),
  },
  problems: ['unauthorized', 'malformed_body', 'payload_too_large', 'unavailable'],
});

export function webhookRoutes({ config, database, queues, log }: EdgeDeps) {
  return createRouter().openapi(webhook, async (c) => {
    const rawBody = new Uint8Array(await c.req.arrayBuffer());
    const verdict = verifyWebhook({
      rawBody,
      headers: c.req.raw.headers,
      keys: config.BUNNY_READ_ONLY_KEY ?? [],
      token: config.BUNNY_WEBHOOK_TOKEN,
      url: c.req.url,
    });
    if (!verdict.ok) throw new AppError('unauthorized', { detail: `webhook refused: ${verdict.reason}` });
    const event = parseWebhook(rawBody);
    if (!event) throw new AppError('malformed_body');
    const stored = await storeWebhookEvent(database.db, {
      videoGuid: event.guid,
      libraryId: event.libraryId,
      status: event.status,
      body: Buffer.from(rawBody).toString('utf8'),
      verifiedBy: verdict.by,
    });
    // Bunny is not kept waiting for Redis: what is stored is applied in any case.
    void announceWebhook(queues.webhooks, stored.id, log);
    return c.json({ id: stored.id }, 200);
  });
}
