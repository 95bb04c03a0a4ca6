import { randomUUID } from 'node:crypto';
import { Hono } from 'hono';
import type { Capacity } from '../../../lib/media/contract.ts';
import type { MediaDeps } from '../deps.ts';

/** For whoever restarts or routes: open to all, and telling nothing. */
export const healthRoutes = ({ bakes }: MediaDeps) =>
  new Hono()
    .get('/healthz', (c) => c.json({ status: 'ok' }))
    .get('/readyz', (c) => (bakes.draining ? c.json({ status: 'draining' }, 503) : c.json({ status: 'ready' })));

export const statusRoutes = ({ bakes, metrics }: MediaDeps) => {
  const instance = randomUUID();
  return new Hono()
    .get('/capacity', (c) =>
      c.json({ instance, slots: bakes.slots, busy: bakes.busy, draining: bakes.draining } satisfies Capacity),
    )
    .get('/metrics', async (c) =>
      c.text(await metrics.registry.metrics(), 200, { 'content-type': metrics.registry.contentType }),
    );
};
