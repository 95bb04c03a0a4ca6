import type { Context, ErrorHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { isDatabaseAway } from '../../lib/db/outage.ts';
import { AppError, type ErrorCode, problemOf, toAppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { EdgeEnv } from './router.ts';

/** Answers an error as a problem. */
export function problem(c: Context, error: AppError): Response {
  if (error.code === 'unauthorized' && !c.res.headers.has('WWW-Authenticate')) c.header('WWW-Authenticate', 'Bearer');
  if (error.retryAfterMs !== undefined) c.header('Retry-After', String(Math.ceil(error.retryAfterMs / 1000)));
  c.header('Content-Type', 'application/problem+json');
  return c.body(JSON.stringify(problemOf(error)), error.status as ContentfulStatusCode);
}

/** A request that does not fit its schema: one issue per field, named as the caller wrote it. */
export const invalidRequest = (error: z.core.$ZodError, target: string): AppError =>
  new AppError('invalid_request', {
    issues: error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), message: 'is not known here' }))
        : [{ path: issue.path.join('.') || target, message: issue.message }],
    ),
  });

/** For Hono's body limit, which answers in plain text by itself. */
export const refuseBody = (): never => {
  throw new AppError('payload_too_large');
};

/** What Hono and its middleware throw, by status. */
const FRAMEWORK_CODES: Record<number, ErrorCode> = {
  400: 'malformed_body',
  403: 'forbidden',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  504: 'unavailable',
};

function known(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (thrown instanceof HTTPException) {
    return new AppError(FRAMEWORK_CODES[thrown.status] ?? 'internal', { detail: thrown.message, cause: thrown });
  }
  if (isDatabaseAway(thrown)) return new AppError('unavailable', { retryAfterMs: 1_000, cause: thrown });
  return toAppError(thrown);
}

/** Answers whatever was thrown as a problem; what is our own fault goes to the log in full and out as one sentence. */
export const onError =
  (log: Logger): ErrorHandler<EdgeEnv> =>
  (thrown, c) => {
    const error = known(thrown);
    const entry = { err: error, detail: error.detail, requestId: c.get('requestId') };
    if (error.status >= 500) log.error(entry, 'request failed');
    else log.debug(entry, 'request refused');
    return problem(c, error);
  };
