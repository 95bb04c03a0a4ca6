import type { HttpBindings } from '@hono/node-server';
import { Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { AppError, toAppError } from '../../../lib/errors.ts';
import { composeRender } from '../../../lib/media/compose.ts';
import { type ComposeLine, type ComposeRequest, composeRequest } from '../../../lib/media/contract.ts';
import { checkRequest } from '../../../lib/media/request.ts';
import type { MediaDeps } from '../deps.ts';
import { lineStream } from '../line-stream.ts';
import { parseBody } from '../parse.ts';

/** A recipe with the locations of a hundred clips is some 30 kilobytes. */
const MAX_BODY_BYTES = 512 * 1024;

/** A caller that has not taken one of so many heartbeats is gone. */
const UNREAD_HEARTBEATS = 30;

/** Bakes, and answers with a line of JSON for whatever happens; the last line decides. */
export const composeRoutes = (deps: MediaDeps) => {
  const whenOpen: MiddlewareHandler = async (_, next) => {
    // Before the body is read: a caller that is turned away should lose no time.
    deps.bakes.assertOpen();
    await next();
  };
  const limit = bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: () => {
      throw new AppError('payload_too_large');
    },
  });
  return new Hono().post('/v1/exercises/compose', whenOpen, limit, async (c) => {
    const request = await parseBody(c, composeRequest);
    checkRequest(request);
    const leave = deps.bakes.enter();
    const answer = lineStream({
      heartbeatMs: deps.heartbeatMs,
      unreadMs: deps.heartbeatMs * UNREAD_HEARTBEATS,
      signal: AbortSignal.any([c.req.raw.signal, deps.stopping]),
      hangUp: () => (c.env as HttpBindings).outgoing.destroy(),
      // The slot is given back when the bake has ended, with all its processes, not when the caller has gone.
      work: (signal, emit) => bakeToLine(deps, request, signal, emit).finally(leave),
    });
    return new Response(answer, {
      headers: {
        'content-type': 'application/x-ndjson; charset=utf-8',
        'cache-control': 'no-store',
        // Or the server may gather a short answer and give it a length.
        'transfer-encoding': 'chunked',
        'x-accel-buffering': 'no',
      },
    });
  });
};

/** Resolves to the last line, whatever happens. */
async function bakeToLine(
  deps: MediaDeps,
  request: ComposeRequest,
  signal: AbortSignal,
  emit: (line: ComposeLine) => void,
): Promise<ComposeLine> {
  const { renderId, recipeHash } = request;
  const log = deps.log.child({ renderId, recipeHash });
  const startedAt = performance.now();
  try {
    const done = await composeRender(deps.compose, request, { signal, emit });
    const seconds = (performance.now() - startedAt) / 1000;
    deps.metrics.bakes.inc({ outcome: done.resumed ? 'resumed' : 'done', code: '' });
    if (!done.resumed) deps.metrics.bakeSeconds.observe(seconds);
    deps.metrics.segments.inc({ from: 'encoder' }, done.segments.encoded);
    deps.metrics.segments.inc({ from: 'cache' }, done.segments.reused);
    const { segments, resumed, videoGuid, masterSha256 } = done;
    log.info({ seconds, segments, resumed, videoGuid, masterSha256 }, 'bake done');
    return done;
  } catch (thrown) {
    const error = signal.aborted ? stopped(deps) : toAppError(thrown);
    deps.metrics.bakes.inc({ outcome: signal.aborted ? 'aborted' : 'failed', code: error.code });
    log.warn({ err: error, detail: error.detail }, 'bake failed');
    const { code, message, retryable, detail, retryAfterMs } = error;
    return {
      ...{ type: 'error', code, message, retryable },
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(detail !== undefined && { detail }),
    };
  }
}

const stopped = ({ stopping }: MediaDeps) => new AppError(stopping.aborted ? 'media_draining' : 'aborted');
