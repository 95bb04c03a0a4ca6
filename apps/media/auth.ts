import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { AppError } from '../../lib/errors.ts';

/** Lets through who shows the bearer token; compared as hashes, so that neither content nor length shows in time. */
export function bearer(token: string): MiddlewareHandler {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const wanted = digest(token);
  return async (c, next) => {
    const shown = /^Bearer (.+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
    if (shown === undefined || !timingSafeEqual(digest(shown), wanted)) throw new AppError('unauthorized');
    await next();
  };
}
