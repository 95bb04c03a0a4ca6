import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { cors } from 'hono/cors';
import { requestId } from 'hono/request-id';
import { secureHeaders } from 'hono/secure-headers';
import { timeout } from 'hono/timeout';
import { rememberTokens } from '../../lib/auth/remembered-tokens.ts';
import { AppError } from '../../lib/errors.ts';
import { httpMetrics } from '../../lib/metrics.ts';
import { authenticate, bearerOf } from './auth.ts';
import type { EdgeDeps } from './deps.ts';
import { documentOf } from './document.ts';
import { observe } from './observe.ts';
import { createOpsAuth } from './ops-auth.ts';
import { onError, problem, refuseBody } from './problem.ts';
import { createRateLimits } from './rate-limit.ts';
import { answerPolls } from './remembered-polls.ts';
import { createRouter } from './router.ts';
import { assetRoutes } from './routes/assets.ts';
import { assignmentRoutes } from './routes/assignments.ts';
import { webhookRoutes } from './routes/bunny-webhook.ts';
import { docsPage } from './routes/docs.ts';
import { exerciseRoutes } from './routes/exercises.ts';
import { healthRoutes } from './routes/health.ts';
import { notificationRoutes } from './routes/notifications.ts';
import { opsLogin } from './routes/ops-login.ts';
import { programLifeRoutes } from './routes/program-life.ts';
import { programRoutes } from './routes/programs.ts';
import { publishRoutes } from './routes/publish.ts';
import { queuesBoard } from './routes/queues-board.ts';
import { readinessRoutes } from './routes/readiness.ts';
import { renderRoutes } from './routes/renders.ts';
import { sessionLibraryRoutes } from './routes/session-library.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { webhookDeliveryRoutes } from './routes/webhook-deliveries.ts';
import { webhookEndpointRoutes } from './routes/webhook-endpoints.ts';

const MAX_JSON_BYTES = 256 * 1024;

/** Longer than the longest statement may run, so that what is slow answers for itself. */
const ANSWER_WITHIN_MS = 20_000;

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Every PUT is an upload, which is capped and watched where it is streamed. */
const unlessUpload =
  (middleware: MiddlewareHandler): MiddlewareHandler =>
  (c, next) =>
    c.req.method === 'PUT' ? next() : middleware(c, next);

/** A watch over readiness may take longer than anything else, and ends by itself. */
const unlessWatching =
  (middleware: MiddlewareHandler): MiddlewareHandler =>
  (c, next) =>
    c.req.path.endsWith('/readiness') ? next() : middleware(c, next);

/** Answers are a person's own, and some carry addresses that expire; a route that knows better says so. */
const neverStored: MiddlewareHandler = async (c, next) => {
  await next();
  if (!c.res.headers.has('Cache-Control')) c.header('Cache-Control', 'no-store');
};

/** The edge as a function from request to response, and what answers before it; it listens to nothing and owns nothing it was given. */
export function createApp(deps: EdgeDeps) {
  const app = createRouter();
  app.onError(onError(deps.log));
  app.notFound((c) => {
    const allowed = METHODS.filter((method) => hasRoute(method, c.req.path));
    if (allowed.length === 0) return problem(c, new AppError('not_found'));
    c.header('Allow', allowed.join(', '));
    return problem(c, new AppError('method_not_allowed'));
  });
  /** Middleware is registered for "ALL" methods, routes for their own. */
  const hasRoute = (method: string, path: string) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method);

  const metrics = httpMetrics(deps.registry);
  const secure = secureHeaders({
    contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    xFrameOptions: 'DENY',
    overwrite: false,
  });
  const origins = deps.config.CORS_ORIGIN ?? [];
  const crossOrigin = cors({
    origin: origins,
    exposeHeaders: ['ETag', 'X-Request-Id', 'Idempotency-Replayed', 'RateLimit', 'RateLimit-Policy', 'Retry-After'],
    maxAge: 600,
  });
  app.use(requestId());
  app.use(observe(deps.log, metrics.observe));
  app.use(secure);
  if (origins.length > 0) app.use('/v1/*', crossOrigin);
  const { RATE_PER_TOKEN: perToken, RATE_PER_ADDRESS: perAddress, TRUSTED_PROXIES: trustedProxies } = deps.config;
  const tokens = rememberTokens(deps.verify);
  const isVerified = (authorization: string | undefined) => {
    const token = bearerOf(authorization);
    return token !== undefined && tokens.known(token) !== undefined;
  };
  const limits = createRateLimits({ perToken, perAddress, trustedProxies, isVerified });
  app.use('/v1/*', limits.byAddress, authenticate(tokens.verify), limits.byToken, neverStored);
  app.use('/ops/*', limits.byAddress);
  app.use(
    '/v1/*',
    unlessUpload(unlessWatching(timeout(ANSWER_WITHIN_MS))),
    unlessUpload(bodyLimit({ maxSize: MAX_JSON_BYTES, onError: refuseBody })),
    async (c, next) => {
      c.set('db', deps.database.db);
      await next();
    },
  );

  for (const routes of [
    exerciseRoutes(deps),
    assetRoutes(deps),
    programRoutes(deps),
    programLifeRoutes(deps),
    sessionLibraryRoutes(deps),
    publishRoutes(deps),
    renderRoutes(deps),
    assignmentRoutes(deps),
    readinessRoutes(deps),
    notificationRoutes(deps),
    sessionRoutes(deps),
    webhookEndpointRoutes(deps),
    webhookDeliveryRoutes(deps),
    webhookRoutes(deps),
    healthRoutes(deps),
  ]) {
    app.route('/', routes);
  }
  const ops = createOpsAuth(deps);
  app.route('/', opsLogin(deps, ops));
  app.route('/', queuesBoard(deps, ops));
  app.route('/', docsPage());

  const document = documentOf(app);
  app.get('/openapi.json', (c) => c.json(document));

  const atOnce = answerPolls({
    tokens,
    limits,
    statuses: deps.statuses,
    metrics,
    always: origins.length > 0 ? [secure, crossOrigin] : [secure],
    origins,
  });
  return Object.assign(app, { atOnce });
}
