import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type Acquired,
  type Limiter,
  type LimiterOptions,
  openLimiter,
  type Permit,
} from '../../../lib/cache/limiter.ts';
import { silentLog } from '../../support/log.ts';
import { startPrivateRedis, testRedis } from '../../support/redis.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';

const A = 'http://a.test:8081';
const B = 'http://b.test:8081';

const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

type Connection = { redisUrl: string; prefix: string };

function connection(): Connection {
  const { url, prefix } = testRedis();
  return { redisUrl: url, prefix };
}

function limiter(given: Connection, change: Partial<LimiterOptions> = {}): Limiter {
  const made = openLimiter({ ...given, permitMs: 600, announcedMs: 60_000, localCap: 1, log: silentLog, ...change });
  opened.push(made.close);
  return made;
}

function granted(acquired: Acquired): Permit {
  if (acquired.kind !== 'granted') throw new Error(`${acquired.kind} instead of a permit`);
  return acquired.permit;
}

const kinds = async (of: Limiter, targets: string[], times: number) => {
  const seen: string[] = [];
  for (let i = 0; i < times; i++) seen.push((await of.acquire(targets)).kind);
  return seen;
};

describe('the limiter', () => {
  it('counts a slot that turned out not to be there as taken for a while, though nobody holds it', async () => {
    const shared = connection();
    const one = limiter(shared);
    await one.announce(A, 'a-1', 1);
    const started = performance.now();
    granted(await one.acquire([A])).release(500);
    expect(one.held()).toBe(0);
    await waitFor(async () => (await one.acquire([A])).kind === 'granted', { label: 'the slot' });
    expect(performance.now() - started).toBeGreaterThan(450);
  });

  it('lets nobody who gives a permit back have it again before those who wait, and waits for nobody who has given up', async () => {
    const shared = connection();
    const [busy, waits] = [limiter(shared), limiter(shared)];
    await busy.announce(A, 'a-1', 1);
    const first = granted(await busy.acquire([A]));
    expect(await waits.acquire([A])).toEqual({ kind: 'full' });
    first.release();
    expect(await busy.acquire([A])).toEqual({ kind: 'full' });
    granted(await waits.acquire([A])).release();
    expect((await busy.acquire([A])).kind).toBe('granted');

    const other = connection();
    const [alone, gone] = [limiter(other), limiter(other)];
    await alone.announce(A, 'a-1', 1);
    const held = granted(await alone.acquire([A]));
    expect(await gone.acquire([A])).toEqual({ kind: 'full' });
    gone.close();
    held.release();
    expect(await kinds(alone, [A], 2)).toEqual(['full', 'granted']);
  });

  it('takes from nobody where there is room for all who wait', async () => {
    const shared = connection();
    const [one, two, three] = [limiter(shared), limiter(shared), limiter(shared)];
    await one.announce(A, 'a-1', 1);
    const held = granted(await one.acquire([A]));
    expect(await two.acquire([A])).toEqual({ kind: 'full' });
    await one.announce(A, 'a-1', 3);
    expect((await three.acquire([A])).kind).toBe('granted');
    expect((await two.acquire([A])).kind).toBe('granted');
    held.release();
  });

  it('grants as many permits as are announced, over all who ask, each for the target with the most room', async () => {
    const shared = connection();
    const [one, two] = [limiter(shared), limiter(shared)];
    expect(await one.acquire([A, B])).toEqual({ kind: 'unannounced' });
    await one.announce(A, 'a-1', 2);
    await two.announce(B, 'b-1', 1);
    const permits = [
      granted(await one.acquire([A, B])),
      granted(await two.acquire([A, B])),
      granted(await one.acquire([A, B])),
    ];
    expect(permits.map(({ target }) => target).sort()).toEqual([A, A, B]);
    expect(await two.acquire([A, B])).toEqual({ kind: 'full' });
    expect([one.held(), two.held(), two.capacity()]).toEqual([2, 1, 3]);
    permits.find(({ target }) => target === B)?.release();
    expect(granted(await two.acquire([A, B])).target).toBe(B);
  });

  it('never grants more than there are, however many ask at once', async () => {
    const shared = connection();
    const all = [limiter(shared), limiter(shared), limiter(shared)];
    await all[0]!.announce(A, 'a-1', 4);
    const answers = await Promise.all(all.flatMap((one) => Array.from({ length: 10 }, () => one.acquire([A]))));
    expect(answers.filter(({ kind }) => kind === 'granted')).toHaveLength(4);
  });

  it('adds up the instances behind one target, and forgets those that are announced no more', async () => {
    const shared = connection();
    const one = limiter(shared, { announcedMs: 200 });
    await one.announce(A, 'a-1', 1);
    await one.announce(A, 'a-2', 1);
    expect(one.capacity()).toBe(2);
    expect(await kinds(one, [A], 3)).toEqual(['granted', 'granted', 'full']);
    await waitFor(
      async () => {
        await one.announce(A, 'a-2', 1);
        return one.capacity() === 1;
      },
      { label: 'a-1 to be forgotten' },
    );
    await one.withdraw(A, 'a-2');
    expect(await one.acquire([A])).toEqual({ kind: 'unannounced' });
  });

  it('gives nothing to a target that drains, nor to one that was not asked for', async () => {
    const one = limiter(connection());
    await one.announce(A, 'a-1', 0);
    await one.announce(B, 'b-1', 1);
    expect(await one.acquire([A])).toEqual({ kind: 'unannounced' });
    expect(granted(await one.acquire([A, B])).target).toBe(B);
    expect(await one.acquire([A, B])).toEqual({ kind: 'full' });
  });

  it('lets a configured capacity replace what is announced, more or less', async () => {
    const few = limiter(connection(), { capacity: 1 });
    await few.announce(A, 'a-1', 5);
    expect(await kinds(few, [A], 2)).toEqual(['granted', 'full']);
    const many = limiter(connection(), { capacity: 3 });
    expect(await many.acquire([A, B])).toEqual({ kind: 'unannounced' });
    await many.announce(A, 'a-1', 1);
    expect(await kinds(many, [A, B], 4)).toEqual(['granted', 'granted', 'granted', 'full']);
  });

  it('frees the permit of a holder that has died, and keeps that of one that lives', async () => {
    const shared = connection();
    const [dead, living] = [limiter(shared), limiter(shared)];
    await living.announce(A, 'a-1', 2);
    granted(await dead.acquire([A]));
    const kept = granted(await living.acquire([A]));
    expect(await living.acquire([A])).toEqual({ kind: 'full' });
    // As SIGKILL would: no release, no renewal.
    dead.close();
    const since = performance.now();
    granted(
      await waitFor(async () => [await living.acquire([A])].find(({ kind }) => kind === 'granted'), {
        label: 'the permit to be free',
      }),
    );
    expect(performance.now() - since).toBeLessThan(900);
    expect(await living.acquire([A])).toEqual({ kind: 'full' });
    kept.release();
    expect((await living.acquire([A])).kind).toBe('granted');
  });
});

describe('the limiter after FLUSHALL', () => {
  it('knows its holders again within one renewal', async () => {
    const redis = await startPrivateRedis();
    opened.push(redis.stop);
    const shared = { redisUrl: redis.url, prefix: 'flushed' };
    const [holder, other] = [limiter(shared), limiter(shared)];
    await holder.announce(A, 'a-1', 1);
    granted(await holder.acquire([A]));
    const admin = new Redis(redis.url);
    opened.push(() => admin.disconnect());
    await admin.flushall();
    expect(await other.acquire([A])).toEqual({ kind: 'unannounced' });
    await waitFor(async () => (await admin.zcard('flushed:media:permits')) === 1, {
      label: 'the renewal',
      timeoutMs: 400,
    });
    await other.announce(A, 'a-1', 1);
    expect(await other.acquire([A])).toEqual({ kind: 'full' });
  });
});

describe('the limiter without Redis', () => {
  it.each(['refuse', 'stall'] as const)(
    'keeps to the local cap (%s), and carries its holders over when Redis is back',
    async (outage) => {
      const shared = connection();
      const proxy = await startTcpProxy(shared.redisUrl);
      opened.push(proxy.close);
      const cut = limiter({ ...shared, redisUrl: proxy.url }, { localCap: 2, deadlineMs: 100 });
      const other = limiter(shared);
      await cut.announce(A, 'a-1', 2);
      await proxy[outage]();
      const started = performance.now();
      const permits = [granted(await cut.acquire([A, B])), granted(await cut.acquire([A, B]))];
      expect(permits.map(({ target }) => target).sort()).toEqual([A, B]);
      expect(await cut.acquire([A, B])).toEqual({ kind: 'full' });
      expect(performance.now() - started).toBeLessThan(1_000);
      expect(cut.isLocal()).toBe(true);
      await proxy.pass();
      await waitFor(() => !cut.isLocal(), { label: 'Redis to be back' });
      await other.announce(A, 'a-1', 2);
      await other.announce(B, 'b-1', 1);
      expect(await kinds(other, [A, B], 2)).toEqual(['granted', 'full']);
      for (const permit of permits) permit.release();
      await waitFor(async () => (await other.acquire([A, B])).kind === 'granted', { label: 'room again' });
    },
  );

  it('has nothing to give where no target is known, and gives what it held back only once', async () => {
    const away = limiter({ redisUrl: 'redis://127.0.0.1:1', prefix: 'x' }, { deadlineMs: 50 });
    expect(await away.acquire([])).toEqual({ kind: 'unannounced' });
    const permit = granted(await away.acquire([A]));
    permit.release();
    granted(await away.acquire([A]));
    permit.release();
    expect(await away.acquire([A])).toEqual({ kind: 'full' });
  });
});
