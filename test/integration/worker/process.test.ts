import { describe, expect, it } from 'vitest';
import { useAppProcesses } from '../../support/app-process.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';
import { usePipeline } from './fixture.ts';

const pipeline = usePipeline();
const { spawnApp, startApp } = useAppProcesses();

/** Nothing listens there. */
const DEAD = '127.0.0.1:1';

const env = {
  DATABASE_URL: `postgres://nobody@${DEAD}/none`,
  REDIS_URL: `redis://${DEAD}`,
  MEDIA_URL: `http://${DEAD}`,
  MEDIA_TOKEN: 'a-token-of-sixteen-or-more',
  SHUTDOWN_MS: '3000',
  LOG_LEVEL: 'warn',
};

describe('the worker as a process', () => {
  it('starts and stops in time where neither Postgres nor Redis can be reached, and its metrics can be read', async () => {
    const { child, ready } = await startApp('worker', env);
    const metrics = await (await fetch(String(ready.metricsUrl))).text();
    expect(metrics).toContain('bakehouse_maintenance_failures_total');
    const started = performance.now();
    child.kill('SIGTERM');
    // 1 where a step of the shutdown had to be given up, which is said in the log.
    expect([0, 1]).toContain((await child).exitCode);
    expect(performance.now() - started).toBeLessThan(6_000);
  });

  it('says that it does not consume, tries new connections, and at last leaves with 1 in order', async () => {
    const connection = pipeline.connection();
    const proxy = await startTcpProxy(connection.redisUrl);
    pipeline.own(proxy, proxy.close);
    proxy.stallWhere(`${connection.prefix}:render:consumer`);
    const { child, ready } = await startApp('worker', {
      ...env,
      DATABASE_URL: pipeline.database.url,
      REDIS_URL: proxy.url,
      REDIS_PREFIX: connection.prefix,
      CONSUME_STALL_MS: '300',
      SHUTDOWN_MS: '1000',
    });
    const health = async () => {
      const response = await fetch(String(ready.metricsUrl).replace('/metrics', '/healthz'));
      return { status: response.status, body: (await response.json()) as unknown };
    };
    expect(await health()).toMatchObject({ status: 200, body: { status: 'ok' } });
    await pipeline.publish(connection, 1);
    await waitFor(async () => (await health()).status === 503, { label: 'bad health', timeoutMs: 5_000 });
    expect(await health()).toMatchObject({ body: { status: 'not-consuming', kinds: ['render'] } });
    const { exitCode, stderr } = await child;
    expect(exitCode).toBe(1);
    expect(stderr.match(/"then":"replaced"/g)).toHaveLength(3);
    expect(stderr).toContain('no render job is taken');
  });

  it('refuses to start with a wrong configuration, naming every variable and what it expects', async () => {
    const { exitCode, stderr, stdout } = await spawnApp('worker', { RENDER_CONCURRENCY: 'many', MEDIA_TOKEN: 'short' });
    expect([exitCode, stdout]).toEqual([1, '']);
    for (const expected of [
      /DATABASE_URL: is not set; a URL \(postgres:/,
      /REDIS_URL: is not set/,
      /MEDIA_URL: is not set/,
      /MEDIA_TOKEN: expects at least 16 characters/,
      /RENDER_CONCURRENCY: expects a whole number/,
    ]) {
      expect(stderr).toMatch(expected);
    }
  });
});
