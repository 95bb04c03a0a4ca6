import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../../apps/edge/listen.ts';
import { AppError } from '../../../lib/errors.ts';
import { serveMetrics } from '../../../lib/metrics.ts';
import { anExercise } from '../../support/clinic.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { DEAD, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
let edge: TestEdge;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.close());

describe('problems', () => {
  const asManager = { as: who.manager };

  it('answer a path that is none, with a token or without', async () => {
    for (const [path, init] of [
      ['/nothing', {}],
      ['/v1/nothing', asManager],
    ] as const) {
      expect(await problemOf(await edge.call('GET', path, init))).toEqual({
        contentType: 'application/problem+json',
        httpStatus: 404,
        type: 'urn:bakehouse:problem:not_found',
        title: 'There is no such thing.',
        status: 404,
        detail: 'There is no such thing.',
        code: 'not_found',
      });
    }
  });

  it('answer a method that is none there with those that are', async () => {
    const response = await edge.call('DELETE', '/v1/programs', asManager);
    expect(await problemOf(response)).toMatchObject({ httpStatus: 405, code: 'method_not_allowed' });
    expect(response.headers.get('allow')).toBe('GET, POST');
    expect((await edge.call('POST', '/healthz')).headers.get('allow')).toBe('GET');
  });

  it.each(['{', '', 'null,', '{"title":"a"', '\u0000'])('answer the malformed JSON %j', async (body) => {
    const headers = { 'content-type': 'application/json' };
    const response = await edge.call('POST', '/v1/programs', { ...asManager, body, headers });
    expect(await problemOf(response)).toMatchObject({ httpStatus: 400, code: 'malformed_body' });
  });

  it.each(['null', '[]', '"text"', '1'])('answer the JSON %s, which is no object', async (body) => {
    const headers = { 'content-type': 'application/json' };
    const response = await edge.call('POST', '/v1/programs', { ...asManager, body, headers });
    expect(await problemOf(response)).toMatchObject({
      httpStatus: 422,
      code: 'invalid_request',
      errors: [{ path: 'json' }],
    });
  });

  it('answer a body of another type', async () => {
    const headers = { 'content-type': 'text/plain' };
    const response = await edge.call('POST', '/v1/programs', { ...asManager, body: '{}', headers });
    expect(await problemOf(response)).toMatchObject({ httpStatus: 415, code: 'unsupported_media_type' });
  });

  it('answer JSON over 256 KB, whether its length is told or not', async () => {
    const body = JSON.stringify({ title: 'x'.repeat(256 * 1024), language: 'en' });
    const headers = { 'content-type': 'application/json' };
    for (const given of [body, new Blob([body]).stream()]) {
      const response = await edge.call('POST', '/v1/programs', { ...asManager, body: given, headers });
      expect(await problemOf(response)).toMatchObject({ httpStatus: 413, code: 'payload_too_large' });
    }
  });

  it('take JSON that comes in pieces', async () => {
    const body = new Blob(['{"title":"Knee",', '"language":"en"}']);
    const headers = { 'content-type': 'application/json' };
    const response = await edge.call('POST', '/v1/programs', { ...asManager, body: body.stream(), headers });
    expect(response.status).toBe(201);
  });

  it('say nothing of the inside where something breaks', async () => {
    const secret = 'postgres://user:hunter2@10.0.0.5/clinic';
    const failures = [new Error(secret), new AppError('internal', { detail: secret })];
    for (const failure of failures) {
      const broken = await startEdge({}, { verify: () => Promise.reject(failure) });
      try {
        const response = await broken.call('GET', '/v1/programs', { as: who.manager });
        const text = await response.clone().text();
        expect(await problemOf(response)).toMatchObject({ httpStatus: 500, code: 'internal' });
        expect(text + JSON.stringify([...response.headers])).not.toMatch(/hunter2|10\.0|stack|Error:|node_modules/);
      } finally {
        await broken.close();
      }
    }
  });
});

describe('where Postgres', () => {
  let proxy: TcpProxy;
  let cut: TestEdge;
  beforeAll(async () => {
    cut = await startEdge();
    proxy = await startTcpProxy(cut.deps.config.DATABASE_URL);
  });
  afterAll(async () => {
    await cut.close();
    await proxy.close();
  });

  it('goes away, requests answer 503 and /readyz says so, until it is back', async () => {
    const through = await startEdge({ DATABASE_URL: proxy.url });
    try {
      const list = () => through.call('GET', '/v1/programs', { as: who.manager });
      expect((await list()).status).toBe(200);
      await proxy.refuse();
      const problem = await list();
      expect(problem.headers.get('retry-after')).toBe('1');
      expect(await problemOf(problem)).toMatchObject({ httpStatus: 503, code: 'unavailable' });
      const readyz = await through.call('GET', '/readyz');
      expect([readyz.status, await readyz.json()]).toEqual([
        503,
        { status: 'unavailable', postgres: 'down', redis: 'up' },
      ]);
      expect((await through.call('GET', '/healthz')).status).toBe(200);
      await proxy.pass();
      await expect.poll(async () => (await through.call('GET', '/readyz')).status).toBe(200);
      expect((await list()).status).toBe(200);
    } finally {
      await through.close();
    }
  });
});

describe('health', () => {
  it('is ready with everything up', async () => {
    const response = await edge.call('GET', '/readyz');
    expect([response.status, await response.json()]).toEqual([200, { status: 'ready', postgres: 'up', redis: 'up' }]);
  });

  it('is degraded but ready without Redis', async () => {
    const down = await startEdge({ REDIS_URL: `redis://${DEAD}` });
    try {
      const response = await down.call('GET', '/readyz');
      expect([response.status, await response.json()]).toEqual([
        200,
        { status: 'degraded', postgres: 'up', redis: 'down' },
      ]);
    } finally {
      await down.close();
    }
  });

  it('is not ready while it drains, but alive', async () => {
    const draining = await startEdge({}, { stopping: AbortSignal.abort() });
    try {
      const response = await draining.call('GET', '/readyz');
      expect([response.status, await response.json()]).toMatchObject([503, { status: 'draining' }]);
      expect(await (await draining.call('GET', '/healthz')).json()).toEqual({ status: 'ok' });
    } finally {
      await draining.close();
    }
  });
});

describe('every answer', () => {
  const anywhere = ['/healthz', '/nothing', '/v1/programs', '/ops/queues', '/openapi.json', '/docs'];

  it('carries a request id, the caller’s where it is sane', async () => {
    for (const path of anywhere) {
      const mine = await edge.call('GET', path, { headers: { 'x-request-id': 'abc-123' } });
      expect(mine.headers.get('x-request-id')).toBe('abc-123');
      for (const odd of ['a b', '<script>', 'x'.repeat(300)]) {
        const made = await edge.call('GET', path, { headers: { 'x-request-id': odd } });
        expect(made.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      }
    }
  });

  it('carries the headers that keep a browser safe', async () => {
    for (const path of anywhere) {
      const { headers } = await edge.call('GET', path);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none';/);
    }
  });

  it('lets no other origin in, unless it is named', async () => {
    const preflight = {
      headers: { origin: 'https://app.test', 'access-control-request-method': 'GET' },
    };
    expect(
      (await edge.call('OPTIONS', '/v1/programs', preflight)).headers.get('access-control-allow-origin'),
    ).toBeNull();
    const open = await startEdge({ CORS_ORIGIN: 'https://app.test,https://other.test' });
    try {
      const allow = async (origin: string) => {
        const headers = { ...preflight.headers, origin };
        return (await open.call('OPTIONS', '/v1/programs', { headers })).headers.get('access-control-allow-origin');
      };
      expect(await allow('https://app.test')).toBe('https://app.test');
      expect(await allow('https://evil.test')).toBeNull();
    } finally {
      await open.close();
    }
  });
});

describe('the docs', () => {
  it('list every route with its security, and are one valid document', async () => {
    interface Operation {
      summary?: string;
      security?: object[];
      responses: Record<string, { description: string; content?: object }>;
    }
    const document = (await (await edge.call('GET', '/openapi.json')).json()) as {
      openapi: string;
      paths: Record<string, Record<string, Operation>>;
      components: { schemas: object; securitySchemes: object };
    };
    expect(document.openapi).toBe('3.1.0');
    const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const undocumented = /^\/(ops|docs|openapi\.json)/;
    const routed = edge.app.routes
      .filter(({ method, path }) => method !== 'ALL' && !undocumented.test(path))
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(documented.sort()).toEqual([...new Set(routed)].sort());
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const operation of Object.values(methods)) {
        expect(operation.summary).toBeTruthy();
        if (path.startsWith('/v1/')) {
          expect(operation.security).toEqual([{ bearer: [] }]);
          expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['401', '403', '422']));
        }
      }
    }
    const text = JSON.stringify(document);
    for (const [, name] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
      expect(document.components.schemas).toHaveProperty(name!);
    }
    for (const [, pattern] of text.matchAll(/"pattern":"((?:[^"\\]|\\.)*)"/g)) {
      expect(() => new RegExp(JSON.parse(`"${pattern}"`))).not.toThrow();
      expect(pattern).not.toMatch(/\/[a-z]*$/);
    }
  });

  it('are readable offline: the page and all it loads come from here', async () => {
    for (const path of ['/docs', '/docs/']) {
      const page = await (await edge.call('GET', path)).text();
      const links = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!);
      expect(links.length).toBe(4);
      for (const link of links) {
        expect(link).toMatch(/^\/docs\//);
        const file = await edge.call('GET', link);
        expect(file.status).toBe(200);
        expect(file.headers.get('content-security-policy')).toContain("script-src 'self'");
        await file.body?.cancel();
      }
    }
  });

  it('serve no other file of the package', async () => {
    for (const path of [
      '/docs/package.json',
      '/docs/../package.json',
      '/docs/%2e%2e/package.json',
      '/docs/index.html',
    ]) {
      expect((await edge.call('GET', path)).status).toBe(404);
    }
  });
});

describe('metrics', () => {
  it('count by the route’s pattern, with no path, id or secret in a label', async () => {
    const counted = await startEdge();
    try {
      const { id } = await anExercise(counted.db);
      await counted.call('GET', `/v1/exercises/${id}`, { as: who.manager });
      await counted.call('GET', `/v1/exercises/${id}`);
      await counted.call('GET', '/secret-path/4711');
      await counted.call('GET', '/v1/secret-path', { as: who.manager });
      await counted.call('POST', '/webhooks/bunnystream?token=secret-token', { body: '{}' });
      await counted.call('BREW', '/healthz');
      const metrics = await serveMetrics(counted.deps.registry, { host: '127.0.0.1', port: 0 });
      const text = await (await fetch(metrics.url)).text();
      expect(text).toMatch(
        /bakehouse_http_requests_total\{method="GET",route="\/v1\/exercises\/:id",status="200",app="edge"\} 1/,
      );
      expect(text).toMatch(
        /bakehouse_http_requests_total\{method="GET",route="\/v1\/exercises\/:id",status="401",app="edge"\} 1/,
      );
      expect(text).toMatch(/bakehouse_http_requests_total\{method="POST",route="\/webhooks\/bunnystream",status="401"/);
      expect(text).toMatch(/requests_total\{method="other",route="[^"]*",status="40[45]"/);
      expect(text).toMatch(/bakehouse_http_request_duration_seconds_bucket\{le="0\.1",app="edge",method="GET"/);
      expect(text).not.toMatch(/secret|4711/);
      expect(text).not.toContain(id);
      expect((await fetch(metrics.url.replace('/metrics', '/'))).status).toBe(404);
      await metrics.close();
      await expect(fetch(metrics.url)).rejects.toThrow();
    } finally {
      await counted.close();
    }
  });

  it('are not served where the API is', async () => {
    expect((await edge.call('GET', '/metrics')).status).toBe(404);
  });
});

describe('on a socket', () => {
  it('a HEAD is answered as a GET, without its body', async () => {
    const listener = await listen(edge.app, { host: '127.0.0.1', port: 0 });
    try {
      const head = await fetch(`${listener.url}/healthz`, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([200, '']);
    } finally {
      await listener.close(1_000);
    }
  });

  it('closing lets an answer under way finish and takes no more', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let entered = () => {};
    const inside = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const slow = await startEdge(
      {},
      {
        verify: async () => {
          entered();
          await held;
          return { sub: 'ann', role: 'manager', org: who.manager.org };
        },
      },
    );
    const listener = await listen(slow.app, { host: '127.0.0.1', port: 0 });
    try {
      const answer = fetch(`${listener.url}/v1/programs`, { headers: { authorization: 'Bearer x' } });
      await inside;
      const closed = listener.close(5_000);
      await expect(fetch(`${listener.url}/healthz`)).rejects.toThrow();
      release();
      expect((await answer).status).toBe(200);
      await closed;
    } finally {
      await slow.close();
    }
  });

  it('closing cuts what does not finish in time', async () => {
    const stuck = await startEdge({}, { verify: () => new Promise(() => {}) });
    const listener = await listen(stuck.app, { host: '127.0.0.1', port: 0 });
    try {
      const answer = fetch(`${listener.url}/v1/programs`, { headers: { authorization: 'Bearer x' } });
      const refused = expect(answer).rejects.toThrow();
      await expect.poll(() => fetch(`${listener.url}/healthz`).then((response) => response.status)).toBe(200);
      await listener.close(50);
      await refused;
    } finally {
      await stuck.close();
    }
  });
});
