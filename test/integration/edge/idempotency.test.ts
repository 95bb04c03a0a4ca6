import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pruneHistory } from '../../../lib/db/prune.ts';
import { idempotencyKeys, organisations, programs } from '../../../lib/db/schema/index.ts';
import { type Caller, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
let edge: TestEdge;
let keys = 0;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
});
afterAll(() => edge.close());

const newKey = () => `key-${++keys}`;
const make = (key: string, json: object = { title: 'Knee', language: 'en' }, as: Caller = who.specialist) =>
  edge.call('POST', '/v1/programs', { as, json, headers: { 'idempotency-key': key } });
const made = () => edge.db.$count(programs);

describe('a POST with an Idempotency-Key', () => {
  it('is done once and answered the same again', async () => {
    const before = await made();
    const key = newKey();
    const [first, again] = [await make(key), await make(key)];
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(await again.json()).toEqual(await first.json());
    expect([first, again].map((each) => each.headers.get('idempotency-replayed'))).toEqual([null, 'true']);
    expect(await made()).toBe(before + 1);
  });

  it('answered again carries what every answer carries', async () => {
    const key = newKey();
    await make(key);
    const { headers } = await make(key);
    expect(headers.get('x-request-id')).toBeTruthy();
    expect(headers.get('ratelimit')).toMatch(/^"token";r=/);
    expect(headers.get('ratelimit-policy')).toMatch(/^"token";q=/);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('asked by many at once is done once: the others are told to wait', async () => {
    const before = await made();
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 8 }, () => make(key)));
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].every((status) => status === 201 || status === 409)).toBe(true);
    expect(await made()).toBe(before + 1);
    const late = answers.find(({ status }) => status === 409);
    if (late) {
      expect(await problemOf(late)).toMatchObject({ code: 'idempotency_under_way' });
      expect(late.headers.get('retry-after')).toBe('1');
    }
  });

  it('is refused where the key stood for something else', async () => {
    const key = newKey();
    await make(key);
    const problem = await problemOf(await make(key, { title: 'Hip', language: 'en' }));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'idempotency_key_reused' });
  });

  it('that was refused may be made again in a better way with the same key', async () => {
    const key = newKey();
    expect((await make(key, { title: '', language: 'en' })).status).toBe(422);
    expect((await make(key)).status).toBe(201);
  });

  it('does not meet the keys of others, of a namesake in another clinic either', async () => {
    const key = newKey();
    const namesake: Caller = { ...who.otherManager, sub: who.specialist.sub };
    const owners = [who.specialist, who.manager, namesake];
    const orgs: unknown[] = [];
    for (const as of owners) {
      const answer = await make(key, { title: 'Knee', language: 'en' }, as);
      expect(answer.headers.get('idempotency-replayed')).toBeNull();
      orgs.push(((await answer.json()) as { orgId: string }).orgId);
    }
    expect(orgs).toEqual(owners.map(({ org }) => org));
  });

  it('whose process died half way may be made again after its time', async () => {
    const key = newKey();
    await make(key);
    await edge.db.execute(sql`update idempotency_keys set status = null, body = null where key = ${key}`);
    expect((await problemOf(await make(key))).code).toBe('idempotency_under_way');
    await edge.db.execute(
      sql`update idempotency_keys set taken_until = now() - interval '1 second' where key = ${key}`,
    );
    expect((await make(key)).status).toBe(201);
  });

  it.each(['', 'two words', 'x'.repeat(256)])('%j is no key', async (key) => {
    expect(await problemOf(await make(key))).toMatchObject({ httpStatus: 422, errors: [{ path: 'Idempotency-Key' }] });
  });

  it('is forgotten after a day', async () => {
    const key = newKey();
    await make(key);
    await edge.db.execute(sql`update idempotency_keys set created_at = now() - interval '25 hours' where key = ${key}`);
    await pruneHistory(edge.db, { days: 90, limit: 100 });
    expect(await edge.db.$count(idempotencyKeys, sql`key = ${key}`)).toBe(0);
    const answer = await make(key);
    expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([201, null]);
  });
});
