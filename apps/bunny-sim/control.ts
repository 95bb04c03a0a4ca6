import { Hono } from 'hono';
import { ZodError, z } from 'zod';
import type { Faults } from './faults.ts';
import type { Journal, SimEnv } from './journal.ts';

/** `/sim/…`: what the real Bunny has not. Switches faults, and tells what was asked and delivered. */
export function createControlRoutes(faults: Faults, journal: Journal): Hono<SimEnv> {
  const app = new Hono<SimEnv>();
  app.get('/faults', (c) => c.json(faults.settings() as object));
  app.post('/faults', async (c) => {
    try {
      faults.merge(await c.req.json());
    } catch (error) {
      if (error instanceof ZodError) return c.json({ error: z.prettifyError(error) }, 400);
      return c.json({ error: 'the body is not JSON' }, 400);
    }
    return c.json(faults.settings() as object);
  });
  app.delete('/faults', (c) => {
    faults.reset();
    return c.json({});
  });
  app.get('/log', (c) => c.json({ requests: journal.requests, deliveries: journal.deliveries }));
  return app;
}
