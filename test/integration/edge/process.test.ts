import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Env } from '../../../lib/config/env.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { DEAD, people, testEnv, tokenFor } from './fixture.ts';

const who = people();

const { spawnApp, startApp } = useAppProcesses();
let database: TestDatabase | undefined;

afterEach(async () => {
  await database?.drop();
  database = undefined;
});

const spawnEdge = (env: Env) => spawnApp('edge', env);

async function startReady(change: Env = {}) {
  database = await createTestDatabase();
  const { child, ready } = await startApp(
    'edge',
    testEnv({ DATABASE_URL: database.url, LOG_LEVEL: 'info', ...change }),
  );
  return { child, ready: ready as { ready: boolean; url: string; metricsUrl: string } };
}

describe('the edge as a process', () => {
  it('says on one line where it serves, serves there, and leaves with 0 when told to', async () => {
    const { child, ready } = await startReady();
    expect(ready).toEqual({
      ready: true,
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      metricsUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/),
    });
    const authorization = `Bearer ${await tokenFor(who.manager)}`;
    expect((await fetch(`${ready.url}/readyz`)).status).toBe(200);
    const list = await fetch(`${ready.url}/v1/programs`, { headers: { authorization } });
    expect(await list.json()).toEqual({ items: [], nextCursor: null });
    expect(await (await fetch(ready.metricsUrl)).text()).toContain('route="/v1/programs",status="200"');
    child.kill('SIGTERM');
    const result = await child;
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toBe(JSON.stringify(ready));
    expect(result.stderr).toContain('"route":"/v1/programs"');
    expect(result.stderr).not.toContain(authorization);
  });

  it('starts without Redis and leaves with 0 all the same, in time', async () => {
    const { child, ready } = await startReady({ REDIS_URL: `redis://${DEAD}` });
    expect(await (await fetch(`${ready.url}/readyz`)).json()).toMatchObject({ status: 'degraded' });
    const start = performance.now();
    child.kill('SIGTERM');
    expect((await child).exitCode).toBe(0);
    expect(performance.now() - start).toBeLessThan(8_000);
  });

  it('starts on the port it is given, or not at all', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const refused = await spawnEdge(testEnv({ DATABASE_URL: 'postgres://localhost/none', EDGE_PORT: String(port) }));
    expect(refused.exitCode).toBe(1);
    expect(refused.stdout).toBe('');
    expect(refused.stderr).toContain('EADDRINUSE');
    taken.close();
    await once(taken, 'close');
    const { ready } = await startReady({ EDGE_PORT: String(port) });
    expect(ready.url).toBe(`http://127.0.0.1:${port}`);
  });

  it('names everything that is wrong with its configuration and leaves with 1', async () => {
    const result = await spawnEdge({ NODE_ENV: 'production', EDGE_PORT: 'x', OPS_PASSWORD: 'development-password' });
    expect(result.exitCode).toBe(1);
    expect(result.stdout).toBe('');
    for (const name of ['EDGE_PORT', 'DATABASE_URL', 'JWT_SECRET', 'OPS_PASSWORD', 'BUNNY_READ_ONLY_KEY']) {
      expect(result.stderr).toContain(`- ${name}: `);
    }
    expect(result.stderr).not.toContain('development-password');
  });
});
