import { createHash } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode, StatusCode } from 'hono/utils/http-status';
import { giveUpKey, keepAnswer, takeKey } from '../../lib/db/idempotency.ts';
import { AppError } from '../../lib/errors.ts';
import type { EdgeEnv } from './router.ts';

/** Longer than any request of these may take: after it, whoever took the key has died. */
const TAKEN_MS = 60_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Does a POST with an `Idempotency-Key` at most once, and answers its repetitions with what the first was answered, marked
 * by `Idempotency-Replayed` (after draft-ietf-httpapi-idempotency-key-header-07). What was refused or failed is not kept,
 * and may be tried again; what an edge died over is not: `idempotency_unknown`. Keys belong to whoever the token speaks for
 * in the role that it gives them, and are forgotten after a day. Comes after what asks for a role, as it answers for the
 * handler.
 */
export const idempotent: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  const key = c.req.header('Idempotency-Key');
  if (key === undefined) return next();
  if (!KEY.test(key)) {
    const message = 'expects 1 to 255 printable ASCII characters without spaces';
    throw new AppError('invalid_request', { issues: [{ path: 'Idempotency-Key', message }] });
  }
  const { db, who } = c.var;
  const body = await c.req.text();
  const request = createHash('sha256')
    .update(JSON.stringify([who.role, c.req.path, body]))
    .digest('hex');
  const keyed = { actor: `${who.org ?? ''} ${who.sub}`, key, request };
  const taken = await takeKey(db, keyed, TAKEN_MS);
  switch (taken.kind) {
    case 'reused':
      throw new AppError('idempotency_key_reused');
    case 'under-way':
      throw new AppError('idempotency_under_way', { retryAfterMs: taken.leftMs });
    case 'unknown':
      throw new AppError('idempotency_unknown');
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
  // The request's time was up before its handler ended, whose answer is lost: whether it did anything is not known.
  if (c.error instanceof HTTPException && c.error.status === 504) return;
  // Errors have become answers by now. What was refused did nothing, and may be asked for in a better way.
  const { status } = c.res;
  if (!c.res.ok) return giveUpKey(db, keyed);
  const contentType = c.res.headers.get('Content-Type') ?? 'application/json';
  await keepAnswer(db, keyed, { status, contentType, body: c.get('keptBody') ?? (await c.res.clone().text()) });
};
