import { sql } from 'drizzle-orm';
import { timeout } from 'hono/timeout';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idempotent } from '../../../apps/edge/idempotency.ts';
import { onError } from '../../../apps/edge/problem.ts';
import { createRouter } from '../../../apps/edge/router.ts';
import { pruneHistory } from '../../../lib/db/prune.ts';
import { idempotencyKeys, organisations, programs } from '../../../lib/db/schema/index.ts';
import { silentLog } from '../../support/log.ts';
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

/** As an edge leaves a key that died between what it did and its answer; it is taken for so many seconds from now. */
const leaveUnanswered = (key: string, seconds: number) =>
  edge.db.execute(
    sql`update idempotency_keys set status = null, content_type = null, body = null,
          taken_until = now() + ${seconds} * interval '1 second' where key = ${key}`,
  );

/** An app whose only route goes on after its time for an answer is up, until it is told to end. */
function slowApp() {
  let end = () => {};
  const told = new Promise<void>((resolve) => {
    end = resolve;
  });
  let settle = () => {};
  const ended = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const app = createRouter();
  app.onError(onError(silentLog));
  app.use(timeout(1), async (c, next) => {
    c.set('who', { sub: 'slow', role: 'ops', org: null });
    c.set('db', edge.db);
    await next().finally(settle);
  });
  app.post('/slow', idempotent, async (c) => {
    await told;
    return c.json({}, 201);
  });
  return { app, end, ended };
}

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
      expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(1);
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

  it('whose process died before it could answer is never done again with its key', async () => {
    const before = await made();
    const key = newKey();
    await make(key);
    await leaveUnanswered(key, -1);
    const answer = await make(key);
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(await problemOf(answer)).toMatchObject({ httpStatus: 409, code: 'idempotency_unknown' });
    expect(await problemOf(await make(key))).toMatchObject({ httpStatus: 409, code: 'idempotency_unknown' });
    expect(await made()).toBe(before + 1);
    expect((await make(newKey())).status).toBe(201);
  });

  it('that is under way is told for how long it may be', async () => {
    const key = newKey();
    await make(key);
    await leaveUnanswered(key, 40);
    const answer = await make(key);
    expect(await problemOf(answer)).toMatchObject({ httpStatus: 409, code: 'idempotency_under_way' });
    const seconds = Number(answer.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(1);
    expect(seconds).toBeLessThanOrEqual(40);
  });

  it('that failed may be made again with the same key', async () => {
    const key = newKey();
    await edge.db.execute(sql`alter table programs rename to programs_away`);
    try {
      expect((await make(key)).status).toBe(500);
    } finally {
      await edge.db.execute(sql`alter table programs_away rename to programs`);
    }
    expect((await make(key)).status).toBe(201);
  });

  it('that was answered for before it ended is not done again with its key', async () => {
    const { app, end, ended } = slowApp();
    const answer = await app.request('/slow', { method: 'POST', headers: { 'idempotency-key': 'slow' } });
    expect(answer.status).toBe(503);
    end();
    await ended;
    expect(await edge.db.$count(idempotencyKeys, sql`key = 'slow' and status is null`)).toBe(1);
  });

  it('is not answered to the same person in a role that may not ask for it', async () => {
    const key = newKey();
    await make(key);
    const as: Caller = { ...who.specialist, role: 'patient' };
    const json = { title: 'Knee', language: 'en' };
    expect(await problemOf(await make(key, json, as))).toMatchObject({ httpStatus: 403, code: 'forbidden' });
  });

  it('belongs to the role that it was used in', async () => {
    const before = await made();
    const key = newKey();
    await make(key);
    const as: Caller = { ...who.specialist, role: 'manager' };
    const problem = await problemOf(await make(key, { title: 'Knee', language: 'en' }, as));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'idempotency_key_reused' });
    expect(await made()).toBe(before + 1);
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
