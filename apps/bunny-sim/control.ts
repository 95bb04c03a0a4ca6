import { Hono } from 'hono';
import { Faults } from './faults.ts';
import type { Journal, SimEnv } from './journal.ts';

/** `/sim/…`: what the real Bunny has not. Switches faults, and tells what was asked and delivered. */
export function createControlRoutes(faults: Faults, journal: Journal): Hono<SimEnv> {
  const app = new Hono<SimEnv>();
  app.get('/faults', (c) => c.json(faults.settings() as object));
  app.post('/faults', async (c) => {
    const body: unknown = await c.req.json().catch(() => undefined);
    const problem = Faults.problem(body);
    if (problem !== undefined) return c.json({ error: problem }, 400);
    faults.merge(body);
    return c.json(faults.settings() as object);
  });
  app.delete('/faults', (c) => {
    faults.reset();
    return c.json({});
  });
  app.get('/log', (c) => c.json({ requests: journal.requests, deliveries: journal.deliveries }));
  return app;
}
