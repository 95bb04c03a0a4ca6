import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startDeliverer } from '../../../apps/worker/deliverer.ts';
import { workerMetrics } from '../../../apps/worker/metrics.ts';
import { loadWorkerConfig } from '../../../lib/config/worker.ts';
import { pruneDeliveries, replayDelivery } from '../../../lib/db/deliveries.ts';
import { claimDeliveries, recordOutcome } from '../../../lib/db/delivery-leases.ts';
import {
  members,
  notifications,
  webhookAttempts,
  webhookDeliveries,
  webhookEndpoints,
} from '../../../lib/db/schema/index.ts';
import { rotateSecret, updateEndpoint } from '../../../lib/db/webhook-endpoints.ts';
import type { AppError } from '../../../lib/errors.ts';
import { createRegistry } from '../../../lib/metrics.ts';
import { createSigner } from '../../../lib/outbound/secret.ts';
import type { Resolve } from '../../../lib/outbound/target.ts';
import { anOrganisation } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { type Receiver, startReceiver, verified } from '../../support/receiver.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';

const KEY = 'a-signing-key-for-tests-that-is-long-enough';
const signer = createSigner([KEY]);
const database = useTestDatabase();

const opened: (() => unknown)[] = [];
const own = <T>(value: T, close: () => unknown): T => {
  opened.push(close);
  return value;
};
beforeEach(() => database.db.execute(sql`truncate webhook_endpoints, webhook_deliveries, notifications cascade`));
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

const receive = async (): Promise<Receiver> => {
  const receiver = await startReceiver();
  return own(receiver, receiver.close);
};

/** Sends as a worker does, on a schedule of milliseconds. */
function deliver(env: Record<string, string> = {}, resolve?: Resolve) {
  const config = loadWorkerConfig({
    ...{ NODE_ENV: 'test', DATABASE_URL: database.url, REDIS_URL: 'redis://localhost', MEDIA_URL: 'http://localhost' },
    ...{ MEDIA_TOKEN: 'a-token-for-media', WEBHOOK_SIGNING_KEY: KEY, WEBHOOK_ALLOW_PRIVATE: 'true' },
    ...{ DELIVERY_POLL_MS: '20', DELIVERY_TIMEOUT_MS: '2000', DELIVERY_RETRY_MS: '10,20', ...env },
  });
  const registry = createRegistry('worker');
  const metrics = workerMetrics(registry);
  const deliverer = startDeliverer({ config, database, metrics, log: silentLog }, resolve);
  const outcomes = async () => {
    const { values } = await metrics.deliveries.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
  };
  return own({ ...deliverer, outcomes }, deliverer.stop);
}

const anEndpoint = async (url: string, change: Partial<typeof webhookEndpoints.$inferInsert> = {}) => {
  const orgId = change.orgId ?? (await anOrganisation(database.db));
  const row = { orgId, url, events: ['program.ready' as const], createdBy: 'manager-1', ...change };
  const [endpoint] = await database.db.insert(webhookEndpoints).values(row).returning();
  return endpoint!;
};
const data = { programId: randomUUID(), title: 'Knee, first month' };
const sent = async (endpointId: string, count = 1) => {
  const rows = Array.from({ length: count }, () => ({ endpointId, type: 'program.ready' as const, data }));
  const made = await database.db.insert(webhookDeliveries).values(rows).returning();
  return made.map(({ id }) => id);
};
const rowOf = async (id: string) =>
  (await database.db.select().from(webhookDeliveries).where(eq(webhookDeliveries.id, id)))[0]!;
const endpointOf = async (id: string) =>
  (await database.db.select().from(webhookEndpoints).where(eq(webhookEndpoints.id, id)))[0]!;
const logOf = (id: string) =>
  database.db
    .select({ status: webhookAttempts.status, errorCode: webhookAttempts.errorCode })
    .from(webhookAttempts)
    .where(eq(webhookAttempts.deliveryId, id))
    .orderBy(webhookAttempts.id);
const becomes = (id: string, state: string) =>
  waitFor(async () => (await rowOf(id)).state === state, { label: `the delivery to be ${state}` });

describe('a delivery', () => {
  it('is a signed POST after Standard Webhooks, and its log says how it went', async () => {
    const receiver = await receive();
    const endpoint = await anEndpoint(receiver.url);
    const [id] = await sent(endpoint.id);
    const worker = deliver();
    await becomes(id!, 'delivered');
    const [webhook, ...more] = receiver.received;
    expect(more).toEqual([]);
    const { createdAt } = await rowOf(id!);
    const payload = verified(webhook!, signer.secretOf(endpoint));
    expect(payload).toEqual({ type: 'program.ready', timestamp: createdAt.toISOString(), data });
    expect(webhook).toMatchObject({ id, headers: { 'content-type': 'application/json' } });
    expect(() => verified(webhook!, signer.secretOf({ ...endpoint, id: randomUUID() }))).toThrow();
    expect(await logOf(id!)).toEqual([{ status: 204, errorCode: null }]);
    expect(await worker.outcomes()).toEqual({ delivered: 1 });
  });

  it('that fails is tried again on the schedule under the same id, and a success clears the endpoint’s record', async () => {
    const receiver = await receive();
    receiver.answer = (response, nth) => response.writeHead(nth < 3 ? 503 : 200).end();
    const endpoint = await anEndpoint(receiver.url, { failingSince: new Date() });
    const [id] = await sent(endpoint.id);
    const worker = deliver();
    await becomes(id!, 'delivered');
    expect(new Set(receiver.received.map((webhook) => webhook.id))).toEqual(new Set([id]));
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    const failed = { status: 503, errorCode: 'endpoint_refused' };
    expect(await logOf(id!)).toEqual([failed, failed, { status: 200, errorCode: null }]);
    expect((await endpointOf(endpoint.id)).failingSince).toBeNull();
    expect(await worker.outcomes()).toEqual({ retry: 2, delivered: 1 });
  });

  it('waits as long as its receiver asked for', async () => {
    const receiver = await receive();
    receiver.answer = (response, nth) => response.writeHead(nth === 1 ? 429 : 200, { 'retry-after': '1' }).end();
    const [id] = await sent((await anEndpoint(receiver.url)).id);
    deliver();
    await becomes(id!, 'delivered');
    const [first, second] = receiver.received;
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(950);
  });

  it('has failed after the last of the schedule, and goes out again where it is replayed', async () => {
    const receiver = await receive();
    receiver.answer = (response) => response.writeHead(500).end();
    const endpoint = await anEndpoint(receiver.url);
    const [id] = await sent(endpoint.id);
    deliver();
    await becomes(id!, 'failed');
    expect(receiver.received).toHaveLength(3);
    expect((await endpointOf(endpoint.id)).enabled).toBe(true);
    receiver.answer = (response) => response.writeHead(200).end();
    await replayDelivery(database.db, { id: endpoint.id, orgId: endpoint.orgId }, id!);
    await becomes(id!, 'delivered');
    expect(receiver.received.at(-1)?.id).toBe(id);
    expect(await logOf(id!)).toHaveLength(4);
  });

  it('follows no redirect', async () => {
    const [receiver, elsewhere] = [await receive(), await receive()];
    receiver.answer = (response) => response.writeHead(307, { location: elsewhere.url }).end();
    const [id] = await sent((await anEndpoint(receiver.url)).id);
    deliver({ DELIVERY_RETRY_MS: '10' });
    await becomes(id!, 'failed');
    expect(await logOf(id!)).toContainEqual({ status: 307, errorCode: 'endpoint_refused' });
    expect(elsewhere.received).toEqual([]);
  });

  it('is taken once its status says so, whatever the rest of the answer is', async () => {
    const receiver = await receive();
    receiver.answer = (response, nth) => {
      response.writeHead(200);
      if (nth === 1) response.write('x'.repeat(1_000_000));
      // The second answer says no more, and does not end.
      else response.write('x');
    };
    const ids = await sent((await anEndpoint(receiver.url)).id, 2);
    deliver({ DELIVERY_TIMEOUT_MS: '300' });
    for (const id of ids) await becomes(id, 'delivered');
    expect(receiver.received).toHaveLength(2);
  });

  it('and its log are pruned in their time', async () => {
    const receiver = await receive();
    const [old, young] = await sent((await anEndpoint(receiver.url)).id, 2);
    deliver();
    for (const id of [old, young]) await becomes(id!, 'delivered');
    await database.db.execute(
      sql`update webhook_deliveries set created_at = now() - interval '31 days' where id = ${old}`,
    );
    expect(await pruneDeliveries(database.db, { days: 30, limit: 100 })).toBe(1);
    expect([await logOf(old!), await logOf(young!)].map(({ length }) => length)).toEqual([0, 1]);
  });
});

describe('an endpoint', () => {
  it('that answers 410 is disabled at once, and its managers are told', async () => {
    const receiver = await receive();
    receiver.answer = (response) => response.writeHead(410).end();
    const endpoint = await anEndpoint(receiver.url);
    await database.db.insert(members).values([
      { orgId: endpoint.orgId, subject: 'manager-1', role: 'manager' },
      { orgId: endpoint.orgId, subject: 'specialist-1', role: 'specialist' },
    ]);
    const [first] = await sent(endpoint.id);
    const worker = deliver();
    await becomes(first!, 'failed');
    expect(await endpointOf(endpoint.id)).toMatchObject({ enabled: false, disabledReason: 'gone' });
    const [second] = await sent(endpoint.id);
    const witness = await receive();
    const [seen] = await sent((await anEndpoint(witness.url)).id);
    await becomes(seen!, 'delivered');
    expect((await rowOf(second!)).state).toBe('pending');
    expect(receiver.received).toHaveLength(1);
    const told = await database.db.select().from(notifications);
    const payload = { endpointId: endpoint.id, url: endpoint.url, reason: 'gone' };
    expect(told).toMatchObject([{ recipient: 'manager-1', kind: 'webhook_endpoint.disabled', payload }]);
    expect(await worker.outcomes()).toEqual({ gone: 1, delivered: 1 });
    // What waited goes out when it is enabled again.
    receiver.answer = (response) => response.writeHead(200).end();
    await updateEndpoint(database.db, { id: endpoint.id, orgId: null }, { enabled: true });
    await becomes(second!, 'delivered');
  });

  it('of which every attempt has failed for long is disabled, and one that began to fail is not', async () => {
    const receiver = await receive();
    receiver.answer = (response) => response.writeHead(500).end();
    const day = 24 * 3_600_000;
    const [long, short] = [
      await anEndpoint(receiver.url, { failingSince: new Date(Date.now() - 5.1 * day) }),
      await anEndpoint(receiver.url, { failingSince: new Date(Date.now() - 4.9 * day) }),
    ];
    const ids = [...(await sent(long.id)), ...(await sent(short.id))];
    deliver({ DELIVERY_RETRY_MS: '10000' });
    for (const id of ids) await waitFor(async () => (await logOf(id)).length > 0, { label: 'an attempt' });
    expect(await endpointOf(long.id)).toMatchObject({ enabled: false, disabledReason: 'failing' });
    expect(await endpointOf(short.id)).toMatchObject({ enabled: true, disabledReason: null });
  });

  it('is not judged by what its address before this one answered', async () => {
    const { db } = database;
    const endpoint = await anEndpoint('http://127.0.0.1:9/old');
    await sent(endpoint.id);
    const [held] = await claimDeliveries(db, { limit: 1, failingLimit: 1, perEndpoint: 1, leaseMs: 60_000 });
    await updateEndpoint(db, { id: endpoint.id, orgId: null }, { url: 'http://127.0.0.1:9/new' });
    const gone = { status: 410, errorCode: 'endpoint_gone', durationMs: 1, retryMs: null, gone: true };
    expect(await recordOutcome(db, held!, gone, { giveUpMs: 0 })).toEqual({ held: true, disabled: null });
    expect((await endpointOf(endpoint.id)).enabled).toBe(true);
  });

  it('that never answers holds up no other, however much waits for it', async () => {
    const [slow, slower, quick] = [await receive(), await receive(), await receive()];
    for (const one of [slow, slower]) one.answer = () => undefined;
    await sent((await anEndpoint(slow.url)).id, 50);
    await sent((await anEndpoint(slower.url)).id, 50);
    deliver({ DELIVERY_CONCURRENCY: '5', DELIVERY_PER_ENDPOINT: '2', DELIVERY_TIMEOUT_MS: '60000' });
    await waitFor(() => slow.received.length + slower.received.length === 4, { label: 'the slow ones to be busy' });
    const ids = await sent((await anEndpoint(quick.url)).id, 20);
    for (const id of ids) await becomes(id, 'delivered');
    expect([slow, slower].map(({ received }) => received.length)).toEqual([2, 2]);
    expect(quick.received).toHaveLength(20);
  });

  it('that fails leaves half of the places to those that work, however many fail with it', async () => {
    const { db } = database;
    const dead = await receive();
    dead.answer = () => undefined;
    for (let i = 0; i < 6; i++) {
      const { id } = await anEndpoint(dead.url, { failingSince: new Date() });
      await sent(id, 2);
    }
    deliver({ DELIVERY_CONCURRENCY: '4', DELIVERY_TIMEOUT_MS: '60000' });
    await waitFor(() => dead.received.length === 2, { label: 'half of the places to be taken' });
    const works = await receive();
    for (const id of await sent((await anEndpoint(works.url)).id, 3)) await becomes(id, 'delivered');
    expect(dead.received).toHaveLength(2);
    expect(await db.$count(webhookAttempts)).toBe(3);
  });

  it('that fails has one attempt under way at a time, after those of endpoints that work', async () => {
    const { db } = database;
    const failing = await anEndpoint('http://127.0.0.1:9/', { failingSince: new Date() });
    const working = await anEndpoint('http://127.0.0.1:9/');
    await sent(failing.id, 3);
    await sent(working.id, 3);
    const claim = async (limit: number, failingLimit: number) =>
      (await claimDeliveries(db, { limit, failingLimit, perEndpoint: 2, leaseMs: 60_000 })).map(
        ({ endpoint }) => endpoint.id,
      );
    expect(await claim(1, 9)).toEqual([working.id]);
    expect(await claim(9, 0)).toEqual([working.id]);
    expect(await claim(9, 9)).toEqual([failing.id]);
    expect(await claim(9, 9)).toEqual([]);
  });
});

describe('the secret of an endpoint', () => {
  it('and each that was replaced signs for a day after its rotation, then the newest only', async () => {
    const receiver = await receive();
    const before = await anEndpoint(receiver.url);
    const reach = { id: before.id, orgId: null };
    const versions = [before, await rotateSecret(database.db, reach), await rotateSecret(database.db, reach)];
    const [old, middle, next] = versions.map(signer.secretOf) as [string, string, string];
    expect(new Set([old, middle, next]).size).toBe(3);
    const [first] = await sent(before.id);
    deliver();
    await becomes(first!, 'delivered');
    for (const secret of [old, middle, next]) expect(verified(receiver.received[0]!, secret)).toMatchObject({ data });
    await rotatedAgo(['24 hours 1 second', '23 hours']);
    const [second] = await sent(before.id);
    await becomes(second!, 'delivered');
    for (const secret of [middle, next]) expect(verified(receiver.received[1]!, secret)).toMatchObject({ data });
    expect(() => verified(receiver.received[1]!, old)).toThrow();
    await rotatedAgo(['48 hours', '24 hours 1 second']);
    const [third] = await sent(before.id);
    await becomes(third!, 'delivered');
    expect(verified(receiver.received[2]!, next)).toMatchObject({ data });
    for (const secret of [old, middle]) expect(() => verified(receiver.received[2]!, secret)).toThrow();
  });

  it('is rotated at most five times in a day, and again as soon as the first of them is a day old', async () => {
    const reach = { id: (await anEndpoint('http://127.0.0.1:9/')).id, orgId: null };
    for (let nth = 0; nth < 5; nth++) await rotateSecret(database.db, reach);
    await rotatedAgo(['23 hours', '4 hours', '3 hours', '2 hours', '1 hour']);
    const refused = await rotateSecret(database.db, reach).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'too_many_requests' });
    const hours = (refused as AppError).retryAfterMs! / 3_600_000;
    expect(hours).toBeGreaterThan(0.9);
    expect(hours).toBeLessThanOrEqual(1);
    await rotatedAgo(['24 hours 1 second', '4 hours', '3 hours', '2 hours', '1 hour']);
    const rotated = await rotateSecret(database.db, reach);
    expect([rotated.secretVersion, rotated.secretRotations.length]).toEqual([7, 5]);
    await expect(rotateSecret(database.db, reach)).rejects.toMatchObject({ code: 'too_many_requests' });
    await expect(rotateSecret(database.db, { ...reach, orgId: randomUUID() })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  /** As if its rotations had been so long ago. */
  const rotatedAgo = (ages: string[]) =>
    database.db.execute(
      sql`update webhook_endpoints set secret_rotations =
            (select array_agg(now() - age::interval order by age::interval desc) from unnest(${sql.param(ages)}::text[]) age)`,
    );
});

describe('a worker', () => {
  it('that died leaves its delivery to the end of its lease, and then it arrives under the same id', async () => {
    const receiver = await receive();
    const [id] = await sent((await anEndpoint(receiver.url)).id);
    const [held] = await claimDeliveries(database.db, { limit: 1, failingLimit: 1, perEndpoint: 1, leaseMs: 400 });
    expect(held?.id).toBe(id);
    deliver();
    await becomes(id!, 'delivered');
    expect(receiver.received.map((webhook) => webhook.id)).toEqual([id]);
    // The dead one wakes: what it writes now changes nothing.
    const failed = { status: 500, errorCode: 'endpoint_refused', durationMs: 1, retryMs: null, gone: false };
    expect(await recordOutcome(database.db, held!, failed, { giveUpMs: 0 })).toEqual({ held: false, disabled: null });
    expect((await rowOf(id!)).state).toBe('delivered');
    expect(await logOf(id!)).toEqual([{ status: 204, errorCode: null }]);
  });

  it('beside another sends no delivery that the other has', async () => {
    const receivers = [await receive(), await receive(), await receive()];
    const ids: string[] = [];
    for (const { url } of receivers) ids.push(...(await sent((await anEndpoint(url)).id, 20)));
    for (let i = 0; i < 3; i++) deliver();
    for (const id of ids) await becomes(id, 'delivered');
    const arrived = receivers.flatMap(({ received }) => received.map(({ id }) => id));
    expect(arrived.sort()).toEqual(ids.sort());
  });

  it('that is told to stop does so at once and gives back what it had begun, the attempt not counted', async () => {
    const receiver = await receive();
    receiver.answer = () => undefined;
    const [id] = await sent((await anEndpoint(receiver.url)).id);
    const worker = deliver({ DELIVERY_TIMEOUT_MS: '60000' });
    await waitFor(() => receiver.received.length === 1, { label: 'the request' });
    const began = performance.now();
    await worker.stop();
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(await rowOf(id!)).toMatchObject({ state: 'pending', tries: 0, leaseToken: null });
    expect(await logOf(id!)).toEqual([]);
    receiver.answer = (response) => response.writeHead(200).end();
    deliver();
    await becomes(id!, 'delivered');
    expect(receiver.received.map((webhook) => webhook.id)).toEqual([id, id]);
  });

  it('without a key to sign with sends nothing', async () => {
    const receiver = await receive();
    const [id] = await sent((await anEndpoint(receiver.url)).id);
    await deliver({ WEBHOOK_SIGNING_KEY: '' }).stop();
    expect(await rowOf(id!)).toMatchObject({ state: 'pending', tries: 0 });
  });
});
