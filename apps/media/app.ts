import { Hono } from 'hono';
import { matchedRoutes } from 'hono/route';
import { AppError } from '../../lib/errors.ts';
import { bearer } from './auth.ts';
import type { MediaDeps } from './deps.ts';
import { onError, problem } from './problem.ts';
import { assetRoutes } from './routes/assets.ts';
import { composeRoutes } from './routes/compose.ts';
import { healthRoutes, statusRoutes } from './routes/health.ts';
import { inventoryRoutes } from './routes/inventory.ts';
import { videoRoutes } from './routes/videos.ts';

/** The media service as a function from request to response; it listens to nothing and owns nothing it was given. */
export function createApp(deps: MediaDeps): Hono {
  const app = new Hono();
  app.onError(onError(deps.log));
  app.notFound((c) => problem(c, new AppError('not_found')));
  app.use(async (c, next) => {
    const start = performance.now();
    await next();
    const route = matchedRoutes(c).at(-1)?.path ?? '/*';
    const seconds = (performance.now() - start) / 1000;
    deps.metrics.http({ method: c.req.method, route, status: c.res.status, seconds });
  });
  app.route('/', healthRoutes(deps));
  app.use(bearer(deps.token));
  app.route('/', statusRoutes(deps));
  app.route('/', composeRoutes(deps));
  app.route('/', videoRoutes(deps));
  app.route('/', assetRoutes(deps));
  app.route('/', inventoryRoutes(deps));
  return app;
}
