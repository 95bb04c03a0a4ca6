import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  auditLog,
  idempotencyKeys,
  organisations,
  webhookAttempts,
  webhookDeliveries,
  webhookEndpoints,
} from '../../../lib/db/schema/index.ts';
import { type Caller, people, problemOf, startEdge, statementsOf, type TestEdge } from './fixture.ts';

const who = people();
const KEY = 'a-signing-key-for-tests-that-is-long-enough';
const PATH = '/v1/webhook-endpoints';
const url = 'http://127.0.0.1:9/hook';
const ABSENT = '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10';

let edge: TestEdge;
beforeAll(async () => {
  edge = await startEdge({ WEBHOOK_SIGNING_KEY: KEY, WEBHOOK_ALLOW_PRIVATE: 'true' });
  await edge.db.insert(organisations).values([
    { id: who.manager.org, name: 'A' },
    { id: who.otherManager.org, name: 'B' },
  ]);
});
afterAll(() => edge.close());

interface Shown {
  id: string;
  url: string;
  events: string[];
  enabled: boolean;
  secret?: string | null;
  description: string | null;
}
const create = (json: object = {}, as: Caller = who.manager, headers = {}) =>
  edge.call('POST', PATH, { as, headers, json: { url, events: ['program.ready'], ...json } });
const made = async (json?: object, as?: Caller) => (await (await create(json, as)).json()) as Shown;
const audited = async (subject: string) => {
  const lines = await edge.db.select().from(auditLog).where(eq(auditLog.subject, subject)).orderBy(auditLog.id);
  return lines.map(({ action }) => action);
};

describe('a webhook endpoint', () => {
  it('is made with a secret that is shown this once, changed, and deleted, and each leaves its trace', async () => {
    const answer = await create({ description: 'Appointments', events: ['program.ready', 'program.ready'] });
    expect(answer.status).toBe(201);
    const endpoint = (await answer.json()) as Shown;
    expect(endpoint).toMatchObject({ url, events: ['program.ready'], enabled: true, description: 'Appointments' });
    expect(endpoint.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);

    const one = `${PATH}/${endpoint.id}`;
    const read = await edge.call('GET', one, { as: who.manager });
    expect(await read.json()).not.toHaveProperty('secret');
    expect(JSON.stringify(await edge.db.select().from(webhookEndpoints))).not.toContain(endpoint.secret);

    const json = { url: `${url}/2`, events: ['exercise.render_failed'], description: null, enabled: false };
    const changed = await edge.call('PATCH', one, { as: who.manager, json });
    expect(await changed.json()).toMatchObject({ ...json, disabledReason: null });

    expect((await edge.call('DELETE', one, { as: who.manager })).status).toBe(204);
    expect((await edge.call('GET', one, { as: who.manager })).status).toBe(404);
    expect(await audited(endpoint.id)).toEqual(
      ['create', 'change', 'delete'].map((what) => `webhook-endpoint.${what}`),
    );
  });

  it('is listed page by page, and to its own clinic only; a superadmin sees and makes any clinic’s', async () => {
    const ids = [(await made()).id, (await made()).id, (await made({ orgId: who.manager.org }, who.superadmin)).id];
    const theirs = (await made({}, who.otherManager)).id;
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await edge.call('GET', `${PATH}?limit=2${cursor}`, { as: who.manager });
      const { items, nextCursor } = (await page.json()) as { items: Shown[]; nextCursor: string | null };
      seen.push(...items.map(({ id }) => id));
      if (nextCursor === null) break;
      cursor = `&cursor=${nextCursor}`;
    }
    expect(seen).toEqual(ids.reverse());
    const all = (await (await edge.call('GET', `${PATH}?limit=100`, { as: who.superadmin })).json()) as {
      items: Shown[];
    };
    expect(all.items.map(({ id }) => id)).toEqual(expect.arrayContaining([...ids, theirs]));
    expect((await problemOf(await create({ orgId: who.otherManager.org }))).code).toBe('forbidden');
  });

  it('gets another secret by a rotation', async () => {
    const { id, secret } = await made();
    const rotated = await edge.call('POST', `${PATH}/${id}/rotate-secret`, { as: who.manager });
    const { secret: next } = (await rotated.json()) as Shown;
    expect(next).toMatch(/^whsec_/);
    expect(next).not.toBe(secret);
    expect(await audited(id)).toEqual(['webhook-endpoint.create', 'webhook-endpoint.rotate-secret']);
  });

  it('asked for again with the same Idempotency-Key is made once, and its secret neither kept nor shown again', async () => {
    const headers = { 'idempotency-key': 'endpoint-1' };
    const first = (await (await create({}, who.manager, headers)).json()) as Shown;
    const again = await create({}, who.manager, headers);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(await again.json()).toEqual({ ...first, secret: null });
    expect(JSON.stringify(await edge.db.select().from(idempotencyKeys))).not.toContain(first.secret);
  });

  it('is one of twenty at most', async () => {
    const crowd: Caller = { role: 'manager', sub: 'm', org: '0199f2c1-7b1e-4c35-9a34-2f4f1d6b8a77' };
    for (let i = 0; i < 20; i++) expect((await create({}, crowd)).status).toBe(201);
    expect((await problemOf(await create({}, crowd))).code).toBe('conflict');
  });

  it.each([
    [{ url: 'not a url' }, 'endpoint_url_refused'],
    [{ url: 'ftp://127.0.0.1/' }, 'endpoint_url_refused'],
    [{ url: 'http://user:word@127.0.0.1/' }, 'endpoint_url_refused'],
    [{ url: 'http://no-such-host.invalid/' }, 'endpoint_unresolved'],
    [{ events: [] }, 'invalid_request'],
    [{ events: ['webhook.test'] }, 'invalid_request'],
    [{ description: 'two\nlines' }, 'invalid_request'],
    [{ secret: 'whsec_mine' }, 'invalid_request'],
  ])('with %j is refused', async (json, code) => {
    expect(await problemOf(await create(json))).toMatchObject({ httpStatus: 422, code });
  });

  it('with a URL of more than two thousand characters is refused', async () => {
    expect((await problemOf(await create({ url: `${url}/${'x'.repeat(2_000)}` }))).code).toBe('invalid_request');
  });

  it('is not changed to an address that is refused', async () => {
    const { id } = await made();
    const json = { url: 'ftp://127.0.0.1/' };
    const answer = await edge.call('PATCH', `${PATH}/${id}`, { as: who.manager, json });
    expect(await problemOf(answer)).toMatchObject({ code: 'endpoint_url_refused', errors: [{ path: 'url' }] });
  });
});

describe('in production', () => {
  it('an address of the inner network is refused with a sentence, however it is written', async () => {
    const strict = await startEdge({ WEBHOOK_SIGNING_KEY: KEY });
    const ask = (json: object) =>
      strict.call('POST', PATH, { as: who.manager, json: { events: ['program.ready'], ...json } });
    for (const [given, sentence] of [
      ['http://example.com/', 'Webhooks are sent to https:// addresses only.'],
      ['https://169.254.169.254/latest/meta-data', 'This address is not one of the public Internet.'],
      ['https://[::ffff:10.0.0.1]/', 'This address is not one of the public Internet.'],
      ['https://2130706433/', 'This address is not one of the public Internet.'],
      ['https://93.184.215.14:22/', 'The port is 443, or one from 1024 on.'],
    ]) {
      const problem = await problemOf(await ask({ url: given }));
      expect(problem).toMatchObject({ httpStatus: 422, code: 'endpoint_url_refused', detail: sentence });
    }
    await strict.close();
  });

  it('no endpoint is made where there is no key to sign with', async () => {
    const off = await startEdge();
    const answer = await off.call('POST', PATH, { as: who.manager, json: { url, events: ['program.ready'] } });
    expect(await problemOf(answer)).toMatchObject({ httpStatus: 501, code: 'webhooks_off' });
    await off.close();
  });
});

describe('the deliveries of an endpoint', () => {
  const deliveriesOf = async (id: string, query = '', as: Caller = who.manager) => {
    const answer = await edge.call('GET', `${PATH}/${id}/deliveries${query}`, { as });
    return (await answer.json()) as {
      items: { id: string; type: string; state: string; attempts: object[] }[];
      nextCursor: string | null;
    };
  };
  const replay = (id: string, delivery: string, as: Caller = who.manager) =>
    edge.call('POST', `${PATH}/${id}/deliveries/${delivery}/replay`, { as });
  const aDelivery = async (endpointId: string, change: Partial<typeof webhookDeliveries.$inferInsert> = {}) => {
    const row = { endpointId, type: 'program.ready' as const, data: { programId: ABSENT, title: 'Knee' }, ...change };
    const [delivery] = await edge.db.insert(webhookDeliveries).values(row).returning();
    return delivery!;
  };

  it('hold a test that was asked for', async () => {
    const { id } = await made();
    const answer = await edge.call('POST', `${PATH}/${id}/test`, { as: who.manager });
    expect(answer.status).toBe(202);
    const { items } = await deliveriesOf(id);
    expect(items).toMatchObject([{ type: 'webhook.test', state: 'pending', attempts: [] }]);
  });

  it('come newest first, page by page and by state, each with its log, in as many statements for one as for many', async () => {
    const { id } = await made();
    const now = new Date();
    const rows = Array.from({ length: 5 }, (_, n) => ({
      ...{ endpointId: id, type: 'program.ready' as const, data: { n }, createdAt: now },
      state: n % 2 ? ('failed' as const) : ('delivered' as const),
      endedAt: now,
    }));
    const [first] = await edge.db.insert(webhookDeliveries).values(rows).returning();
    await edge.db.insert(webhookAttempts).values([
      { deliveryId: first!.id, status: 503, errorCode: 'endpoint_refused', durationMs: 12 },
      { deliveryId: first!.id, status: 200, durationMs: 7 },
    ]);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { items, nextCursor } = await deliveriesOf(id, `?limit=2${cursor}`);
      seen.push(...items.map((item) => item.id));
      if (nextCursor === null) break;
      cursor = `&cursor=${nextCursor}`;
    }
    expect(new Set(seen).size).toBe(5);
    expect((await deliveriesOf(id, '?state=failed')).items).toHaveLength(2);
    const shown = (await deliveriesOf(id)).items.find((item) => item.id === first?.id);
    expect(shown?.attempts).toMatchObject([
      { status: 200, errorCode: null, durationMs: 7 },
      { status: 503, errorCode: 'endpoint_refused', durationMs: 12 },
    ]);
    const counts = [
      await statementsOf(edge, () => deliveriesOf(id, '?limit=1')),
      await statementsOf(edge, () => deliveriesOf(id)),
    ];
    expect(counts).toEqual([2, 2]);
  });

  it('are sent again on request, from the beginning of the schedule', async () => {
    const { id } = await made();
    const { id: delivery } = await aDelivery(id, { state: 'failed', tries: 9, endedAt: new Date() });
    expect(await (await replay(id, delivery)).json()).toMatchObject({ id: delivery, state: 'pending', endedAt: null });
    const [row] = await edge.db.select().from(webhookDeliveries).where(eq(webhookDeliveries.id, delivery));
    expect(row).toMatchObject({ state: 'pending', tries: 0 });
    expect(await audited(id)).toContain('webhook-endpoint.replay');
  });

  it('are not sent again while they are under way, nor to an endpoint that is disabled', async () => {
    const { id } = await made();
    const held = { leaseToken: ABSENT, nextTryAt: new Date(Date.now() + 60_000) };
    expect((await problemOf(await replay(id, (await aDelivery(id, held)).id))).code).toBe('conflict');
    const { id: delivery } = await aDelivery(id, { state: 'delivered' });
    await edge.call('PATCH', `${PATH}/${id}`, { as: who.manager, json: { enabled: false } });
    expect((await problemOf(await replay(id, delivery))).code).toBe('conflict');
    const test = await edge.call('POST', `${PATH}/${id}/test`, { as: who.manager });
    expect((await problemOf(test)).code).toBe('conflict');
  });

  it('are of that endpoint only: another’s, and what is not there, answers 404', async () => {
    const [mine, other] = [await made(), await made({}, who.otherManager)];
    const { id: theirs } = await aDelivery(other.id, { state: 'failed' });
    expect((await replay(mine.id, theirs)).status).toBe(404);
    expect((await replay(other.id, theirs)).status).toBe(404);
    expect((await replay(mine.id, ABSENT)).status).toBe(404);
    for (const route of ['', '/deliveries']) {
      expect((await edge.call('GET', `${PATH}/${other.id}${route}`, { as: who.manager })).status).toBe(404);
    }
  });
});
