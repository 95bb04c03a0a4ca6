import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { HonoAdapter } from '@bull-board/hono';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { timeout } from 'hono/timeout';
import type { EdgeDeps } from '../deps.ts';
import { LOGIN_PATH, type OpsAuth } from '../ops-auth.ts';
import type { EdgeEnv } from '../router.ts';

export const QUEUES_PATH = '/ops/queues';

/** Redis may hang; the page asks again every few seconds. */
const ANSWER_WITHIN_MS = 5_000;

/** The page is built to pull its fonts from Google; without them it falls back to the system's. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

/**
 * bull-board over both queues, for reading only: Postgres is the truth, and a retry or a removal here would change Redis
 * behind its back. bull-board has no authentication of its own.
 */
export function queuesBoard({ queues }: EdgeDeps, ops: OpsAuth) {
  const adapter = new HonoAdapter(serveStatic);
  adapter.setBasePath(QUEUES_PATH);
  createBullBoard({
    queues: [queues.renders, queues.webhooks].map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Bakehouse',
        miscLinks: [{ text: 'Log out', url: LOGIN_PATH }],
        // Listing workers is a CLIENT LIST at every poll.
        showWorkers: false,
      },
    },
  });
  const board = adapter.registerPlugin();

  const app = new Hono<EdgeEnv>();
  app.use(`${QUEUES_PATH}/*`, ops.authenticate, timeout(ANSWER_WITHIN_MS), async (c, next) => {
    await next();
    c.header('Content-Security-Policy', CSP);
    c.header('Cache-Control', 'no-store');
  });
  // The router is strict about the slash, people are not.
  app.get(`${QUEUES_PATH}/`, () => board.request('/'));
  app.route(QUEUES_PATH, board);
  return app;
}
