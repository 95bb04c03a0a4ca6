import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';

/** A video of gigabytes over a thin line takes its time; Node's own limit would cut it after five minutes. */
const REQUEST_TIMEOUT_MS = 2 * 3_600_000;

/** Longer than load balancers keep an idle connection (60 s at AWS): who reuses one must not find it just closed. */
const KEEP_ALIVE_MS = 72_000;

export interface Listener {
  url: string;
  /** Takes no new connection, lets what is under way finish, and cuts what is left after `drainMs`. */
  close(drainMs: number): Promise<void>;
}

/** Answers a request by itself, wholly, or leaves it untouched and says false. */
export type AnswerAtOnce = (request: IncomingMessage, response: ServerResponse) => boolean;

/** What is served: an app, and what may answer before it. */
export interface Served extends Pick<Hono, 'fetch'> {
  atOnce?: AnswerAtOnce;
}

/** Serves it; port 0 takes any free one. Rejects where the address is taken. */
export async function listen(
  { fetch, atOnce = () => false }: Served,
  { host, port }: { host: string; port: number },
): Promise<Listener> {
  const ordinary = getRequestListener(fetch);
  const server = createServer(
    // Sent twice, a header is no shorter list for who looks at Node's own headers than for who looks at Hono's.
    { requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_MS, joinDuplicateHeaders: true },
    (request, response) => {
      if (!atOnce(request, response)) void ordinary(request, response);
    },
  );
  server.listen(port, host);
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close(drainMs) {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      const cut = setTimeout(() => server.closeAllConnections(), drainMs);
      await closed;
      clearTimeout(cut);
    },
  };
}
