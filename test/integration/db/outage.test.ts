import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../lib/db/client.ts';
import { withLock } from '../../../lib/db/lock.ts';
import { isDatabaseAway } from '../../../lib/db/outage.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';

const direct = useTestDatabase();
let proxy: TcpProxy;
let database: Database;

beforeAll(async () => {
  proxy = await startTcpProxy(direct.url);
  const url = new URL(proxy.url);
  url.pathname = new URL(direct.url).pathname;
  database = openDatabase(url.href, { max: 3 });
});

afterAll(async () => {
  await database?.close();
  await proxy?.close();
});

const works = () =>
  waitFor(() => database.ping(2_000).then(() => true), { label: 'the pool to work again', timeoutMs: 15_000 });

describe('a transaction', () => {
  it('that falls silent, as in a frozen process, gives its locks up, and fails alone', async () => {
    const silent = openDatabase(direct.url, { max: 1, statementTimeoutMs: 200 });
    const resumed = silent.db.transaction(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(4711)`);
      await waitFor(
        async () => (await direct.db.execute(sql`select pg_try_advisory_xact_lock(4711) as free`)).rows[0]?.free,
        { label: 'the lock to be free', timeoutMs: 5_000 },
      );
      await tx.execute(sql`select 1`);
    });
    const error = await resumed.catch((thrown: unknown) => thrown);
    expect(isDatabaseAway(error)).toBe(true);
    await silent.ping(2_000);
    await silent.close();
  });
});

/** An uncaught error would end the process, and with it every bake under way; vitest fails the run for one. */
describe('a Postgres that goes away', () => {
  it('in the middle of a transaction fails that transaction only', async () => {
    await works();
    const failed = database.db.transaction(async (tx) => {
      await tx.execute(sql`select 1`);
      await proxy.refuse();
      await delay(20);
      await tx.execute(sql`select 2`);
    });
    await expect(failed).rejects.toThrow();
    await proxy.pass();
    await works();
  });

  it('while a lock is held fails at most the unlocking, and the lock can be had again', async () => {
    await works();
    const held = withLock(database, 'outage', async () => {
      await proxy.refuse();
      await delay(20);
      return 'done';
    });
    await held.catch(() => undefined);
    await proxy.pass();
    await works();
    const again = await waitFor(() => withLock(database, 'outage', async () => 'again'), { label: 'the lock' });
    expect(again).toBe('again');
  });

  it('while every connection is busy gives each of them back', async () => {
    await works();
    const slow = Array.from({ length: 6 }, () =>
      database.db.execute(sql`select pg_sleep(0.3)`).then(
        () => 'done',
        () => 'failed',
      ),
    );
    await delay(100);
    await proxy.refuse();
    expect(new Set(await Promise.all(slow))).toEqual(new Set(['failed']));
    await proxy.pass();
    await works();
  });

  it('without closing its connections is given up by the client itself', async () => {
    const url = new URL(proxy.url);
    url.pathname = new URL(direct.url).pathname;
    const impatient = openDatabase(url.href, { max: 1, statementTimeoutMs: 300 });
    await impatient.ping(2_000);
    proxy.stall();
    const started = performance.now();
    await expect(impatient.db.execute(sql`select 1`)).rejects.toThrow();
    expect(performance.now() - started).toBeLessThan(5_000);
    await proxy.pass();
    await impatient.close();
  });
});

describe('a lock', () => {
  it('is held by one at a time', async () => {
    let leave = () => {};
    const mayLeave = new Promise<void>((resolve) => {
      leave = resolve;
    });
    let entered = false;
    const first = withLock(database, 'one', async () => {
      entered = true;
      await mayLeave;
    });
    await waitFor(() => entered, { label: 'the first holder' });
    expect(await withLock(database, 'one', async () => 'second')).toBeNull();
    leave();
    await first;
    expect(await withLock(database, 'one', async () => 'third')).toBe('third');
  });

  it('is taken from a holder that falls silent, as a frozen process does, and not from one that works on', async () => {
    const frozen = await startTcpProxy(direct.url);
    const silent = openDatabase(frozen.url, { max: 1 });
    let leave = () => {};
    const mayLeave = new Promise<void>((resolve) => {
      leave = resolve;
    });
    let working = 0;
    const work = async () => {
      working += 1;
      await mayLeave;
    };
    const silentMs = 1_500;
    const kept = withLock(database, 'kept', work, { silentMs });
    const lost = withLock(silent, 'lost', work, { silentMs }).catch(() => 'lost');
    await waitFor(() => working === 2, { label: 'both holders' });
    frozen.stall();
    await waitFor(() => withLock(database, 'lost', async () => true), { label: 'the end of the silent holder' });
    expect(await withLock(database, 'kept', async () => true)).toBeNull();
    leave();
    await kept;
    await frozen.refuse();
    expect(await lost).toBe('lost');
    await silent.close();
  });

  it('is taken from a holder that is never heard again after the statement that took it', async () => {
    const proxy = await startTcpProxy(direct.url);
    const frozen = openDatabase(proxy.url, { max: 1 });
    proxy.stallAfter('pg_try_advisory_lock');
    const lost = withLock(frozen, 'barely', async () => 'worked', { silentMs: 1_000 }).catch(() => 'lost');
    const held = sql`select 1 from pg_locks where locktype = 'advisory' and database =
      (select oid from pg_database where datname = current_database())`;
    const taken = async () => (await database.db.execute(held)).rowCount === 1;
    await waitFor(taken, { label: 'the lock to be taken', everyMs: 2 });
    await waitFor(() => withLock(database, 'barely', async () => true), { label: 'the lock to be free again' });
    await proxy.refuse();
    expect(await lost).toBe('lost');
    await frozen.close();
  });
});
