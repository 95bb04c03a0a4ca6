import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStatusBell, openStatusCache, type StatusCache } from '../../../lib/cache/status-cache.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';

let opened: StatusCache[] = [];
let given: { redisUrl: string; prefix: string };
beforeEach(() => {
  const { url, prefix } = testRedis();
  given = { redisUrl: url, prefix };
});
afterEach(() => {
  for (const cache of opened.splice(0)) cache.close();
  opened = [];
});

/** A cache that can hear and ask. */
async function open(redisUrl = given.redisUrl): Promise<StatusCache> {
  const cache = openStatusCache({ ...given, redisUrl, log: silentLog });
  opened.push(cache);
  const probe = randomUUID();
  let heard = false;
  cache.onRing(probe, () => {
    heard = true;
  });
  await waitFor(
    async () => {
      await cache.ring([probe]);
      return heard && (await cache.slots()) !== null;
    },
    { label: 'the cache to hear' },
  );
  return cache;
}

describe('a status', () => {
  it('is computed once for all who ask at once, and is there for other processes then', async () => {
    const [one, other] = [await open(), await open()];
    let computed = 0;
    const compute = async () => {
      computed += 1;
      await delay(20);
      return '{"n":1}';
    };
    const answers = await Promise.all(Array.from({ length: 50 }, () => one.read('p', compute)));
    expect(new Set(answers)).toEqual(new Set(['{"n":1}']));
    await waitFor(async () => (await other.read('p', async () => null)) === '{"n":1}', {
      label: 'the other to see it',
    });
    expect(computed).toBe(1);
  });

  it('that has changed while it was computed is not remembered by anybody', async () => {
    const [one, other] = [await open(), await open()];
    const bell = openStatusBell({ ...given, log: silentLog });
    let compute = (_: string) => {};
    const old = one.read(
      'p',
      () =>
        new Promise((resolve) => {
          compute = resolve;
        }),
    );
    await delay(20);
    await waitFor(() => bell.ring(['p']).then(() => true), { label: 'the bell' });
    await delay(50);
    compute('old');
    expect(await old).toBe('old');
    await delay(50);
    expect(await one.read('p', async () => 'new')).toBe('new');
    expect(await other.read('p', async () => 'new')).toBe('new');
    bell.close();
  });

  it('is computed with what was told last, by any process, until and after it has changed', async () => {
    const [one, other] = [await open(), await open()];
    const lasts: (string | null)[] = [];
    const compute = (text: string) => async (last: string | null) => {
      lasts.push(last);
      return text;
    };
    await one.read('p', compute('1'));
    await waitFor(async () => (await other.read('p', async () => null)) === '1', { label: 'the other to see it' });
    await one.ring(['p']);
    await waitFor(async () => (await other.read('p', compute('2'))) === '2', { label: 'the other to hear' });
    expect(lasts).toEqual([null, '1']);
  });

  it('that is not there, or could not be computed, is asked for again', async () => {
    const cache = await open();
    expect(await cache.read('p', async () => null)).toBeNull();
    await expect(cache.read('p', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
    expect(await cache.read('p', async () => 'here')).toBe('here');
  });
});

it('a Redis that hangs is waited for once, and the status is right all the same', async () => {
  const proxy = await startTcpProxy(given.redisUrl);
  const cache = await open(proxy.url);
  proxy.stall();
  const read = async (programId: string) => {
    const since = performance.now();
    expect(await cache.read(programId, async () => programId)).toBe(programId);
    return performance.now() - since;
  };
  expect(await read('a')).toBeLessThan(900);
  expect(await read('b')).toBeLessThan(100);
  await cache.ring(['a']);
  await proxy.close();
});
