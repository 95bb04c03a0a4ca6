import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOKEN_COOKIE } from '../../../apps/edge/ops-auth.ts';
import { testRedis } from '../../support/redis.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { DEAD, OPS_PASSWORD, people, problemOf, startEdge, type TestEdge, tokenFor } from './fixture.ts';

const who = people();
let edge: TestEdge;
let script: string;

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const ops = basic('ops', OPS_PASSWORD);
const get = (path: string, headers: Record<string, string> = {}) => edge.call('GET', path, { headers });

beforeAll(async () => {
  edge = await startEdge();
  await edge.deps.queues.renders.add('render', { renderId: 'r' }, { jobId: 'job-1' });
  const page = await (await get('/ops/queues', ops)).text();
  script = /src="(static\/js\/main[^"]+)"/.exec(page)?.[1] ?? '';
});
afterAll(() => edge.close());

const paths = () => [
  '/ops/queues',
  '/ops/queues/',
  '/ops/queues/queue/renders',
  '/ops/queues/api/queues',
  '/ops/queues/api/redis/stats',
  `/ops/queues/${script}`,
  '/ops/queues/no-such-page',
];

describe('a stranger', () => {
  it('gets none of its pages, answers or files', async () => {
    expect(script).not.toBe('');
    for (const path of paths()) {
      const response = await get(path);
      expect(await problemOf(response)).toMatchObject({ httpStatus: 401, code: 'unauthorized' });
      expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
    }
  });

  it.each([
    ['a wrong password', basic('ops', `${OPS_PASSWORD}!`)],
    ['a wrong name', basic('root', OPS_PASSWORD)],
    ['no password', basic('ops', '')],
    ['a broken header', { authorization: 'Basic ???' }],
    ['a token that is none', { authorization: 'Bearer nonsense' }],
    ['a cookie that is none', { cookie: `${TOKEN_COOKIE}=nonsense` }],
  ])('is kept out with %s', async (_, headers) => {
    for (const path of paths()) expect((await get(path, headers)).status).toBe(401);
  });

  it.each(['manager', 'specialist', 'patient'] as const)('is kept out as a %s', async (role) => {
    const token = await tokenFor(who[role]);
    for (const path of paths()) {
      expect((await get(path, { authorization: `Bearer ${token}` })).status).toBe(403);
      expect((await get(path, { cookie: `${TOKEN_COOKIE}=${token}` })).status).toBe(403);
    }
  });
});

describe('ops', () => {
  it.each(['ops', 'superadmin'] as const)('comes in with the token of %s, in a header or a cookie', async (role) => {
    const token = await tokenFor(who[role]);
    for (const headers of [{ authorization: `Bearer ${token}` }, { cookie: `other=1; ${TOKEN_COOKIE}=${token}` }]) {
      expect((await get('/ops/queues', headers)).status).toBe(200);
    }
  });

  it('sees the page with and without the slash, and its files', async () => {
    const [bare, slash] = await Promise.all([get('/ops/queues', ops), get('/ops/queues/', ops)]);
    expect([bare.status, slash.status]).toEqual([200, 200]);
    const page = await bare.text();
    expect(await slash.text()).toBe(page);
    expect(page).toContain('<base href="/ops/queues/"');
    const file = await get(`/ops/queues/${script}`, ops);
    expect(file.headers.get('content-type')).toContain('javascript');
    expect((await file.text()).length).toBeGreaterThan(1000);
  });

  it('sees both queues and their jobs', async () => {
    const response = await get('/ops/queues/api/queues?activeQueue=renders&status=latest', ops);
    const { queues } = (await response.json()) as { queues: { name: string; readOnlyMode: boolean; jobs: object[] }[] };
    expect(queues.map(({ name }) => name).sort()).toEqual(['renders', 'webhooks']);
    expect(queues.every(({ readOnlyMode }) => readOnlyMode)).toBe(true);
    expect(queues.find(({ name }) => name === 'renders')?.jobs).toMatchObject([{ id: 'job-1' }]);
  });

  it('can change nothing', async () => {
    const before = await edge.deps.queues.renders.getJobCounts();
    for (const [method, path] of [
      ['PUT', 'pause'],
      ['PUT', 'queues/renders/pause'],
      ['PUT', 'queues/renders/empty'],
      ['PUT', 'queues/renders/obliterate'],
      ['PUT', 'queues/renders/clean/completed'],
      ['PUT', 'queues/renders/job-1/clean'],
      ['PUT', 'queues/renders/job-1/retry'],
      ['POST', 'queues/renders/add'],
    ] as const) {
      const response = await edge.call(method, `/ops/queues/api/${path}`, { headers: ops, json: {} });
      expect({ path, refused: response.status >= 400 }).toEqual({ path, refused: true });
    }
    expect(await edge.deps.queues.renders.getJobCounts()).toEqual(before);
    expect(await edge.deps.queues.renders.isPaused()).toBe(false);
  });

  it('is served pages that load nothing from elsewhere and are not stored', async () => {
    for (const path of ['/ops/queues', '/ops/queues/']) {
      const { headers } = await get(path, ops);
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/);
      expect(headers.get('content-security-policy')).not.toContain('http');
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });
});

describe('without a password set', () => {
  it('only a token opens', async () => {
    const strict = await startEdge({ OPS_PASSWORD: undefined });
    try {
      for (const headers of [basic('ops', ''), basic('ops', 'undefined'), ops, {}]) {
        const response = await strict.call('GET', '/ops/queues', { headers });
        expect(response.status).toBe(401);
        expect(response.headers.get('www-authenticate')).toBe('Bearer');
      }
      expect((await strict.call('GET', '/ops/queues', { as: who.ops })).status).toBe(200);
    } finally {
      await strict.close();
    }
  });
});

describe('where Redis', () => {
  it('is away, the page still comes and its data is an error, in time', async () => {
    const down = await startEdge({ REDIS_URL: `redis://${DEAD}` });
    try {
      expect((await down.call('GET', '/ops/queues', { headers: ops })).status).toBe(200);
      expect((await down.call('GET', '/ops/queues/api/queues', { headers: ops })).status).toBeGreaterThanOrEqual(500);
    } finally {
      await down.close();
    }
  });

  it('hangs, its data is given up after five seconds', async () => {
    const proxy = await startTcpProxy(testRedis().url);
    const hung = await startEdge({ REDIS_URL: proxy.url });
    try {
      await hung.deps.queues.renders.waitUntilReady();
      proxy.stall();
      const problem = await problemOf(await hung.call('GET', '/ops/queues/api/queues', { headers: ops }));
      expect(problem).toMatchObject({ httpStatus: 503, code: 'unavailable' });
    } finally {
      await hung.close();
      await proxy.close();
    }
  });
});
