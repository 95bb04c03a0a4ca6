import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { Logger } from '../../lib/log.ts';
import type { HttpObservation } from '../../lib/metrics.ts';
import type { EdgeEnv } from './router.ts';

/**
 * Counts and logs every request by the pattern of its route. The path itself is not logged: it may carry a secret
 * (`?token=` of the webhook) and as a label it would make series without end.
 */
export const observe =
  (log: Logger, count: (observed: HttpObservation) => void): MiddlewareHandler<EdgeEnv> =>
  async (c, next) => {
    const start = performance.now();
    await next();
    const { method } = c.req;
    // The last that matched is the handler; where there is none, the pattern of some middleware.
    const route = matchedRoutes(c).at(-1)?.path ?? '/*';
    const status = c.res.status;
    const seconds = (performance.now() - start) / 1000;
    count({ method, route, status, seconds });
    log.info({ method, route, status, ms: Math.round(seconds * 1000), requestId: c.var.requestId }, 'request');
  };
