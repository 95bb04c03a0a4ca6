import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { HonoAdapter } from '@bull-board/hono';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { timeout } from 'hono/timeout';
import { authenticateOps } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import type { EdgeEnv } from '../router.ts';

const PATH = '/ops/queues';

/** Redis may hang; the page asks again every few seconds. */
const ANSWER_WITHIN_MS = 5_000;

/** The page is built to pull its fonts from Google; without them it falls back to the system's. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

/**
 * bull-board over both queues, for reading only: Postgres is the truth, and a retry or a removal here would change Redis
 * behind its back. bull-board has no authentication of its own.
 */
export function queuesBoard({ config, queues, verify }: EdgeDeps) {
  const adapter = new HonoAdapter(serveStatic);
  adapter.setBasePath(PATH);
  createBullBoard({
    queues: [queues.renders, queues.webhooks].map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Bakehouse',
        // Listing workers is a CLIENT LIST at every poll.
        showWorkers: false,
      },
    },
  });
  const board = adapter.registerPlugin();

  const app = new Hono<EdgeEnv>();
  app.use(
    `${PATH}/*`,
    authenticateOps(verify, { user: config.OPS_USER, password: config.OPS_PASSWORD }),
    timeout(ANSWER_WITHIN_MS),
    async (c, next) => {
      await next();
      c.header('Content-Security-Policy', CSP);
      c.header('Cache-Control', 'no-store');
    },
  );
  // The router is strict about the slash, people are not.
  app.get(`${PATH}/`, () => board.request('/'));
  app.route(PATH, board);
  return app;
}
