import { createHash } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import type { ContentfulStatusCode, StatusCode } from 'hono/utils/http-status';
import type { Db } from '../../lib/db/client.ts';
import { giveUpKey, keepAnswer, takeKey } from '../../lib/db/idempotency.ts';
import { AppError } from '../../lib/errors.ts';
import type { EdgeEnv } from './router.ts';

/** Longer than any request of these may take. */
const TAKEN_MS = 60_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Does a POST with an `Idempotency-Key` once, and answers its repetitions with what the first was answered, marked by
 * `Idempotency-Replayed` (after draft-ietf-httpapi-idempotency-key-header-07). What was refused is not kept. Keys belong to
 * whoever the token speaks for, and are forgotten after a day.
 */
export const idempotent =
  (db: Db): MiddlewareHandler<EdgeEnv> =>
  async (c, next) => {
    const key = c.req.header('Idempotency-Key');
    if (key === undefined || c.req.method !== 'POST') return next();
    if (!KEY.test(key)) {
      const message = 'expects 1 to 255 printable ASCII characters without spaces';
      throw new AppError('invalid_request', { issues: [{ path: 'Idempotency-Key', message }] });
    }
    const { sub, org } = c.var.who;
    const body = await c.req.text();
    const request = createHash('sha256')
      .update(JSON.stringify([c.req.path, body]))
      .digest('hex');
    const keyed = { actor: `${org ?? ''} ${sub}`, key, request };
    const taken = await takeKey(db, keyed, TAKEN_MS);
    switch (taken.kind) {
      case 'reused':
        throw new AppError('idempotency_key_reused');
      case 'under-way':
        throw new AppError('idempotency_under_way', { retryAfterMs: 1_000 });
      case 'answered': {
        const { status, contentType, body } = taken.answer;
        // Through the context, which holds the headers that the middleware before has set.
        c.header('Idempotency-Replayed', 'true');
        if (body === '') return c.body(null, status as StatusCode);
        c.header('Content-Type', contentType);
        return c.body(body, status as ContentfulStatusCode);
      }
      case 'first':
        break;
    }
    await next();
    // Errors have become answers by now. What was refused did nothing, and may be asked for in a better way.
    const { status } = c.res;
    if (!c.res.ok) return giveUpKey(db, keyed);
    const contentType = c.res.headers.get('Content-Type') ?? 'application/json';
    await keepAnswer(db, keyed, { status, contentType, body: c.get('keptBody') ?? (await c.res.clone().text()) });
  };
