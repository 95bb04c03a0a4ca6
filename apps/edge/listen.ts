import { once } from 'node:events';
import { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
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

/** Serves the app; port 0 takes any free one. Rejects where the address is taken. */
export async function listen(
  app: Pick<Hono, 'fetch'>,
  { host, port }: { host: string; port: number },
): Promise<Listener> {
  const server = createAdaptorServer({
    fetch: app.fetch,
    serverOptions: { requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_MS },
  });
  if (!(server instanceof Server)) throw new TypeError('expects the HTTP/1.1 server that was asked for');
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
