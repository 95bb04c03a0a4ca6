import type { Context, ErrorHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { AppError, problemOf, toAppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

/** An RFC 9457 problem; lib/media/client.ts turns it back into the same `AppError`. */
export function problem(c: Context, error: AppError): Response {
  if (error.retryAfterMs !== undefined) c.header('Retry-After', String(Math.ceil(error.retryAfterMs / 1000)));
  if (error.code === 'unauthorized') c.header('WWW-Authenticate', 'Bearer');
  c.header('Content-Type', 'application/problem+json');
  return c.body(
    JSON.stringify({ ...problemOf(error), retryable: error.retryable }),
    error.status as ContentfulStatusCode,
  );
}

/** Answers whatever a route throws; `detail` stays in the log. */
export const onError =
  (log: Logger): ErrorHandler =>
  (thrown, c) => {
    const error =
      thrown instanceof HTTPException && thrown.status === 413
        ? new AppError('payload_too_large', { cause: thrown })
        : toAppError(thrown);
    const entry = { err: error, detail: error.detail, method: c.req.method, path: c.req.path };
    if (error.status >= 500 && error.code !== 'media_draining') log.error(entry, 'request failed');
    else log.info(entry, 'request refused');
    return problem(c, error);
  };
