import { z } from '@hono/zod-openapi';
import type { EdgeDeps } from '../deps.ts';
import { json } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';

const PROBE_MS = 1_000;

const up = z.enum(['up', 'down']);
const readiness = z
  .object({ status: z.enum(['ready', 'degraded', 'unavailable', 'draining']), postgres: up, redis: up })
  .openapi('ProcessReadiness');

const tags = ['Process'];

const healthz = operation({
  method: 'get',
  path: '/healthz',
  operationId: 'checkHealth',
  tags,
  summary: 'Is the process alive?',
  description: 'Asks nobody else: a restart would not mend what is away.',
  responses: { 200: json(z.object({ status: z.literal('ok') }), 'It is.', { status: 'ok' }) },
  problems: [],
});

const readyz = operation({
  method: 'get',
  path: '/readyz',
  operationId: 'checkReadiness',
  tags,
  summary: 'Should requests be sent here?',
  description:
    'Not without Postgres, and not while shutting down. Without Redis all goes on, with more delay: `degraded`.',
  responses: {
    200: json(readiness, '`ready` or `degraded`.', { status: 'ready', postgres: 'up', redis: 'up' }),
    503: json(readiness, '`unavailable` or `draining`.', { status: 'unavailable', postgres: 'down', redis: 'up' }),
  },
  problems: [],
});

export function healthRoutes({ database, queues, stopping }: EdgeDeps) {
  return createRouter()
    .openapi(healthz, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readyz, async (c) => {
      const [postgres, redis] = await Promise.all([
        database.ping(PROBE_MS).then(
          () => 'up' as const,
          () => 'down' as const,
        ),
        queues.ping(PROBE_MS).then((answers) => (answers ? ('up' as const) : ('down' as const))),
      ]);
      if (stopping.aborted) return c.json({ status: 'draining' as const, postgres, redis }, 503);
      if (postgres === 'down') return c.json({ status: 'unavailable' as const, postgres, redis }, 503);
      return c.json({ status: redis === 'up' ? ('ready' as const) : ('degraded' as const), postgres, redis }, 200);
    });
}
