import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type PrivateRedis, startPrivateRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait.ts';

let server: PrivateRedis;
let client: Redis;

beforeEach(async () => {
  server = await startPrivateRedis();
  client = new Redis(server.url, { maxRetriesPerRequest: null });
  client.on('error', () => undefined);
});

afterEach(async () => {
  client.disconnect();
  await server.stop();
});

it('killed, is started again on the same port with its data', async () => {
  await client.set('note', 'kept');
  // everysec: what is younger than a second may be lost, so the test asks for the write itself.
  await waitFor(async () => (await client.info('persistence')).includes('aof_pending_bio_fsync:0'), {
    label: 'the fsync',
  });
  const killed = server.pid ?? 0;
  process.kill(killed, 'SIGKILL');
  await waitFor(() => server.pid !== null && server.pid !== killed, { label: 'another Redis' });
  expect(await client.get('note')).toBe('kept');
});

it('stays away while something else answers on its port', async () => {
  process.kill(server.pid ?? 0, 'SIGKILL');
  await waitFor(() => server.pid === null, { label: 'the end of Redis', everyMs: 5 });
  const squatter = createServer((socket) => socket.destroy()).listen(Number(new URL(server.url).port), '127.0.0.1');
  await once(squatter, 'listening');
  await delay(1_000);
  expect(server.pid).toBeNull();
  squatter.close();
  await waitFor(() => server.pid !== null, { label: 'another Redis' });
});

it('takes no command without the password, which no argument shows', async () => {
  const url = new URL(server.url);
  const stranger = new Redis({ host: url.hostname, port: Number(url.port), lazyConnect: true, retryStrategy: null });
  stranger.on('error', () => undefined);
  await expect(stranger.get('note')).rejects.toThrow('NOAUTH');
  stranger.disconnect();
  if (process.platform === 'linux') {
    expect(await readFile(`/proc/${server.pid}/cmdline`, 'utf8')).not.toContain(url.password);
  }
});

it('never drops a key to make room, and writes everything to the append-only file', async () => {
  expect(await client.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
  expect(await client.config('GET', 'appendonly')).toEqual(['appendonly', 'yes']);
  expect(await client.config('GET', 'bind')).toEqual(['bind', '127.0.0.1']);
});
