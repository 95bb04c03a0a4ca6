import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { openQueues } from '../../../lib/queue/queues.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { silentLog } from '../../support/log.ts';
import { doneLine, progressLine, type ScriptedMedia } from '../../support/scripted-media.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';
import { usePipeline } from './fixture.ts';

const pipeline = usePipeline();
const { startApp } = useAppProcesses();

/** Bakes for so long, as many at once as it says it can, and turns the rest away as the real one does. */
function bakeFor(media: ScriptedMedia, slots: number, ms: number) {
  const seen = { busy: 0, most: 0, refused: 0 };
  media.capacity.slots = slots;
  media.script = (call) => {
    if (seen.busy >= media.capacity.slots) {
      seen.refused += 1;
      return call.refuse(429, 'media_busy', { 'retry-after': '1' });
    }
    seen.busy += 1;
    seen.most = Math.max(seen.most, seen.busy);
    call.line(progressLine(1));
    const timer = setTimeout(() => {
      leave();
      call.line(doneLine(call.request));
      call.end();
    }, ms);
    let left = false;
    const leave = () => {
      clearTimeout(timer);
      if (!left) seen.busy -= 1;
      left = true;
    };
    void call.gone.then(leave);
  };
  return seen;
}

/** Gives every new connection to the next of them, as a balancer does that knows nothing of HTTP. */
async function startBalancer(urls: readonly string[]): Promise<string> {
  let next = 0;
  const server = createServer((client) => {
    const { hostname, port } = new URL(urls[next++ % urls.length]!);
    const upstream = connect(Number(port), hostname);
    client.pipe(upstream).pipe(client);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  pipeline.own(server, () => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('several workers on several media services', { timeout: 60_000 }, () => {
  it('have no more under way than media can take, are hardly ever turned away, and bake everything once', async () => {
    const connection = pipeline.connection();
    const [two, one] = [await pipeline.media(), await pipeline.media()];
    const seen = [bakeFor(two, 2, 150), bakeFor(one, 1, 150)];
    for (let i = 0; i < 4; i++) pipeline.work(connection, [two, one], { RENDER_CONCURRENCY: '3' });
    const ids = await pipeline.publish(connection, 15);
    const renders = await pipeline.reaches(ids, 'transcoding', 45_000);
    expect(seen.map(({ most }) => most)).toEqual([2, 1]);
    expect(seen[0]!.refused + seen[1]!.refused).toBeLessThanOrEqual(1);
    expect(renders.every(({ attempts }) => attempts === 1)).toBe(true);
    expect(two.calls.length + one.calls.length).toBeLessThanOrEqual(16);
    expect(Math.min(two.calls.length, one.calls.length)).toBeGreaterThan(3);
  });

  it('lose nothing by FLUSHALL, and are soon as many as media can take again', async () => {
    const { redis, connection } = await pipeline.privateRedis();
    const [two, one] = [await pipeline.media(), await pipeline.media()];
    const seen = [bakeFor(two, 2, 200), bakeFor(one, 1, 200)];
    for (let i = 0; i < 3; i++) pipeline.work(connection, [two, one], { RENDER_CONCURRENCY: '3' });
    const ids = await pipeline.publish(connection, 15);
    await waitFor(() => two.calls.length + one.calls.length >= 4, { label: 'some bakes' });
    const admin = new Redis(redis.url);
    pipeline.own(admin, () => admin.disconnect());
    await admin.flushall();
    const renders = await pipeline.reaches(ids, 'transcoding', 45_000);
    expect(renders.every(({ attempts }) => attempts === 1)).toBe(true);
    // Until the holders are known again, which takes half a second here, those who wait may be turned away.
    expect(seen[0]!.refused + seen[1]!.refused).toBeLessThanOrEqual(6);
  });

  it('give nothing to one that drains, and use one that appears later', async () => {
    const connection = pipeline.connection();
    const first = await pipeline.media();
    const later = await pipeline.media();
    const port = Number(new URL(later.url).port);
    await later.close();
    bakeFor(first, 2, 50);
    const targets = [first, { url: later.url, token: first.token }];
    pipeline.work(connection, targets);
    await pipeline.reaches(await pipeline.publish(connection, 3), 'transcoding');
    expect(first.calls).toHaveLength(3);

    const appeared = await pipeline.media({ port });
    bakeFor(appeared, 2, 50);
    first.capacity.draining = true;
    await delay(500);
    await pipeline.reaches(await pipeline.publish(connection, 3), 'transcoding');
    expect([first.calls.length, appeared.calls.length]).toEqual([3, 3]);
  });
});

describe('several instances behind one address', () => {
  it('count together, as long as each is met now and then', async () => {
    const connection = pipeline.connection();
    const instances = [await pipeline.media(), await pipeline.media()];
    instances[0]!.capacity.slots = 2;
    instances[1]!.capacity.slots = 1;
    const balancer = await startBalancer(instances.map(({ url }) => url));
    const worker = pipeline.work(connection, [{ url: balancer, token: instances[0]!.token }]);
    const capacity = () => worker.registry.getSingleMetricAsString('bakehouse_permits_capacity');
    await waitFor(async () => / 3$/m.test(await capacity()), { label: 'both to be counted' });
    instances[1]!.capacity.draining = true;
    await waitFor(async () => / 2$/m.test(await capacity()), { label: 'the one that drains to count no more' });
  });
});

describe('a job without a permit', () => {
  it('waits with its row pending, and goes back to the queue when the worker is told to stop', async () => {
    const connection = pipeline.connection();
    const media = await pipeline.media();
    bakeFor(media, 1, 60_000);
    const worker = pipeline.work(connection, [media], { RENDER_CONCURRENCY: '2' });
    const ids = await pipeline.publish(connection, 2);
    await waitFor(() => media.calls.length === 1, { label: 'the first bake' });
    await delay(500);
    const statuses = (await Promise.all(ids.map(pipeline.render))).map(({ status }) => status).sort();
    expect(statuses).toEqual(['pending', 'rendering']);
    expect(await worker.registry.getSingleMetricAsString('bakehouse_permits_held')).toMatch(/ 1$/m);
    expect(await worker.registry.getSingleMetricAsString('bakehouse_permits_capacity')).toMatch(/ 1$/m);
    expect(await worker.stop()).toEqual([]);
    bakeFor(media, 2, 10);
    pipeline.work(connection, [media]);
    const renders = await pipeline.reaches(ids, 'transcoding');
    expect(renders.map(({ attempts }) => attempts)).toEqual([1, 1]);
  });

  it('gets that of a killed worker as soon as it has run out', async () => {
    const connection = pipeline.connection();
    const media = await pipeline.media();
    bakeFor(media, 1, 60_000);
    const { child } = await startApp('worker', {
      DATABASE_URL: pipeline.database.url,
      REDIS_URL: connection.redisUrl,
      REDIS_PREFIX: connection.prefix,
      MEDIA_URL: media.url,
      MEDIA_TOKEN: media.token,
      RENDER_LEASE_MS: '1500',
      RENDER_CONCURRENCY: '1',
      LOG_LEVEL: 'warn',
    });
    const [held] = (await pipeline.publish(connection, 1)) as [string];
    await waitFor(() => media.calls.length === 1, { label: 'the first bake' });
    child.kill('SIGKILL');
    const killedAt = performance.now();
    bakeFor(media, 1, 10);
    pipeline.work(connection, [media]);
    const [next] = (await pipeline.publish(connection, 1)) as [string];
    await pipeline.reaches([next], 'transcoding');
    expect(performance.now() - killedAt).toBeLessThan(5_000);
    const [again] = await pipeline.reaches([held], 'transcoding');
    expect(again).toMatchObject({ attempts: 2 });
  });

  it('gets one of the few that a worker may use while Redis is away', async () => {
    const connection = pipeline.connection();
    const proxy = await startTcpProxy(connection.redisUrl);
    pipeline.own(proxy, proxy.close);
    const media = await pipeline.media();
    const seen = bakeFor(media, 1, 1_000);
    const worker = pipeline.work({ ...connection, redisUrl: proxy.url }, [media], { RENDER_CONCURRENCY: '4' });
    const ids = await pipeline.publish(connection, 4);
    const queues = openQueues(connection, silentLog);
    pipeline.own(queues, queues.close);
    await waitFor(async () => media.calls.length === 1 && (await queues.renders.getActiveCount()) === 4, {
      label: 'one to bake and three to wait',
    });
    await proxy.refuse();
    // Room enough: what holds them back is the local cap.
    media.capacity.slots = 4;
    await pipeline.reaches(ids, 'transcoding', 20_000);
    expect(seen).toMatchObject({ most: 1, refused: 0 });
    expect(await worker.registry.getSingleMetricAsString('bakehouse_permits_local')).toMatch(/ 1$/m);
    // Or the shutdown would wait for Redis as long as it may.
    await proxy.pass();
  });
});
