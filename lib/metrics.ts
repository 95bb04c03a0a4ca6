import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';

/** A registry with what Node tells about the process, every series labelled with the app's name. */
export function createRegistry(app: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ app });
  collectDefaultMetrics({ register: registry });
  return registry;
}

export interface HttpObservation {
  method: string;
  /** The route's pattern, never the path: every value makes a series. */
  route: string;
  status: number;
  seconds: number;
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export interface HttpMetrics {
  /** Counts and times a request. */
  observe(observed: HttpObservation): void;
  /** Counts one request of these labels at each call, and times none: for answers that cost less than their timing. */
  counter(labels: Omit<HttpObservation, 'seconds'>): () => void;
}

/** Requests by method, route pattern and status. */
export function httpMetrics(registry: Registry): HttpMetrics {
  const plain: { labels: Omit<HttpObservation, 'seconds'>; count: number }[] = [];
  const requests = new Counter({
    name: 'bakehouse_http_requests_total',
    help: 'Requests answered, by method, route pattern and status.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect() {
      for (const entry of plain) {
        this.inc(entry.labels, entry.count);
        entry.count = 0;
      }
    },
  });
  const durations = new Histogram({
    name: 'bakehouse_http_request_duration_seconds',
    help: 'Time from the request until its response was ready to be sent, by method and route pattern; of polls that were answered from memory none.',
    labelNames: ['method', 'route'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [registry],
  });
  return {
    observe: ({ method, route, status, seconds }) => {
      // A client may send any word as its method.
      const known = METHODS.has(method) ? method : 'other';
      requests.inc({ method: known, route, status });
      durations.observe({ method: known, route }, seconds);
    },
    counter: (labels) => {
      const entry = { labels, count: 0 };
      plain.push(entry);
      return () => {
        entry.count += 1;
      };
    },
  };
}

export interface Health {
  ok: boolean;
  /** What is answered, as JSON. */
  body: Record<string, unknown>;
}

/**
 * Serves `/metrics` on a listener of its own, so that it can stay inside while the app is reachable from outside; and
 * `/healthz` (200 or 503) where the app can say how it is.
 */
export async function serveMetrics(
  registry: Registry,
  { host, port, health }: { host: string; port: number; health?: () => Health },
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = request.method === 'GET' ? request.url?.split('?')[0] : undefined;
    if (path === '/healthz' && health) {
      const { ok, body } = health();
      response.writeHead(ok ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      return;
    }
    if (path !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(port, host);
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/metrics`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
