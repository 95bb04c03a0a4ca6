import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Env } from '../../../lib/config/env.ts';
import { assignments, organisations } from '../../../lib/db/schema/index.ts';
import { createLogger } from '../../../lib/log.ts';
import { anExercise } from '../../support/clinic.ts';
import { waitFor } from '../../support/wait.ts';
import {
  aPublishedProgram,
  type Caller,
  moveTo,
  people,
  problemOf,
  serve,
  startEdge,
  statementsOf,
  type TestEdge,
  tokenFor,
} from './fixture.ts';

const who = people();
const ORIGIN = 'https://app.clinic.test';
let edge: TestEdge;
let served: Awaited<ReturnType<typeof serve>>;
let exercise: string;
/** Polls answered from memory are counted, but not logged: so the two ways can be told apart. */
let logged = 0;

beforeAll(async () => {
  const log = createLogger('edge', 'info', { write: () => void logged++ });
  edge = await startEdge({ CORS_ORIGIN: `${ORIGIN}, https://other.test`, TRUSTED_PROXIES: '1' }, { log });
  served = await serve(edge);
  await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  exercise = (await anExercise(edge.db, { orgId: who.manager.org })).id;
});
afterAll(async () => {
  await served.close();
  await edge.close();
});

async function aWatched() {
  const { programId, renderIds } = await aPublishedProgram(edge.db, who.manager.org, [exercise]);
  await edge.db.insert(assignments).values({ programId, patientId: who.patient.sub, assignedBy: 'x' });
  return { programId, renderId: renderIds[0]!, path: `/v1/programs/${programId}/readiness` };
}

/** Asks with a token that is the caller's only one, and says which way the answer took. */
async function poller(as: Caller, path: string) {
  const authorization = `Bearer ${await tokenFor(as)}`;
  return async (headers: Record<string, string> = {}, method = 'GET') => {
    const before = logged;
    const answer = await served.call(method, path, { headers: { authorization, ...headers } });
    return { answer, remembered: logged === before };
  };
}

/** Asks until an answer comes from memory: on a busy machine what was remembered may be too old when it is asked for. */
const fromMemory = (poll: Awaited<ReturnType<typeof poller>>, headers: Record<string, string> = {}) =>
  waitFor(
    async () => {
      const asked = await poll(headers);
      return asked.remembered ? asked : null;
    },
    { label: 'an answer from memory' },
  );

/** Everything an answer says but what is another with each. */
const comparable = async ({ answer }: { answer: Response }) => {
  const { 'x-request-id': id = '', ratelimit = '', date, ...headers } = Object.fromEntries(answer.headers);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  expect(ratelimit).toMatch(/^"token";r=\d+;t=\d+$/);
  return { status: answer.status, headers, text: await answer.text() };
};

describe('a poll that is answered from memory', () => {
  it.each([
    ['a patient', who.patient],
    ['a clinic', who.specialist],
  ])('says to %s what the ordinary answer does, word for word', async (_, as) => {
    const { path } = await aWatched();
    const [poll, ordinary] = [await poller(as, path), await poller(as, `${path}?wait=0`)];
    for (const origin of [{}, { origin: ORIGIN }, { origin: 'https://stranger.test' }]) {
      const tag = (await ordinary()).answer.headers.get('etag') ?? '';
      for (const known of [
        {},
        { 'if-none-match': tag },
        { 'if-none-match': `"x", W/${tag}` },
        { 'if-none-match': '"x"' },
      ]) {
        const headers = { ...origin, ...known };
        const [first, again] = [await ordinary(headers), await fromMemory(poll, headers)];
        expect(first.remembered).toBe(false);
        expect(await comparable(again)).toEqual(await comparable(first));
      }
    }
  });

  it('bears the id that its caller gave it, where that is one', async () => {
    const { path } = await aWatched();
    const poll = await poller(who.patient, path);
    for (const [given, borne] of [
      ['trace-1', 'trace-1'],
      ['two words', expect.stringMatching(/^[0-9a-f-]{36}$/)],
      ['x'.repeat(256), expect.stringMatching(/^[0-9a-f-]{36}$/)],
    ]) {
      const { answer } = await fromMemory(poll, { 'x-request-id': given as string });
      expect(answer.headers.get('x-request-id')).toEqual(borne);
    }
  });

  it('is counted as every other', async () => {
    const { path } = await aWatched();
    const poll = await poller(who.patient, path);
    const counted = async () => {
      const text = await edge.deps.registry.getSingleMetricAsString('bakehouse_http_requests_total');
      return Number(
        /method="GET",route="\/v1\/programs\/:id\/readiness",status="200"[^}]*} (\d+)/.exec(text)?.[1] ?? 0,
      );
    };
    const before = await counted();
    let asked = 0;
    await fromMemory((headers) => {
      asked += 1;
      return poll(headers);
    });
    expect(await counted()).toBe(before + asked);
  });

  it('is news as soon as something has changed', async () => {
    const { path, renderId } = await aWatched();
    const poll = await poller(who.patient, path);
    await fromMemory(poll);
    await moveTo(edge.db, renderId, 'ready');
    await edge.deps.statuses.changed({ renders: [renderId] });
    expect(await (await poll()).answer.json()).toMatchObject({ status: 'ready' });
  });

  it('asks Postgres nothing', async () => {
    const { path } = await aWatched();
    const poll = await poller(who.patient, path);
    await waitFor(async () => (await statementsOf(edge, () => fromMemory(poll))) === 0, { label: 'an answer alone' });
  });
});

describe('a connection that several people share', () => {
  /** Asks over one connection, as a proxy before us does. */
  async function shared(path: string) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    const ask = async (authorization: string[], host?: string) => {
      const asking = request(`${served.url}${path}`, { agent, ...(host !== undefined && { headers: { host } }) });
      asking.setHeader('authorization', authorization).end();
      const [response] = (await once(asking, 'response')) as [IncomingMessage];
      sockets.add(response.socket);
      response.resume();
      await once(response, 'end');
      return response.statusCode;
    };
    return { ask, sockets, close: () => agent.destroy() };
  }
  const bearer = async (as: Caller) => `Bearer ${await tokenFor(as)}`;

  it('answers each of them by their own token', async () => {
    const { path } = await aWatched();
    const { ask, sockets, close } = await shared(path);
    try {
      const [own, strange] = await Promise.all([bearer(who.patient), bearer({ ...who.patient, sub: 'patient-c' })]);
      const statuses: unknown[] = [];
      for (const authorization of [own, own, strange, own, 'Bearer a.b.c', own]) {
        statuses.push(await ask([authorization]));
      }
      expect(statuses).toEqual([200, 200, 404, 200, 401, 200]);
      expect(sockets.size).toBe(1);
    } finally {
      close();
    }
  });

  it('leaves a host that is none to the ordinary way, which refuses it', async () => {
    const { path } = await aWatched();
    const { ask, close } = await shared(path);
    try {
      const own = await bearer(who.patient);
      expect([await ask([own]), await ask([own]), await ask([own], '[bad')]).toEqual([200, 200, 400]);
    } finally {
      close();
    }
  });

  it('takes two tokens in one request for none', async () => {
    const { path } = await aWatched();
    const { ask, close } = await shared(path);
    try {
      const own = await bearer(who.patient);
      expect([await ask([own]), await ask([own]), await ask([own, 'Bearer a.b.c'])]).toEqual([200, 200, 401]);
    } finally {
      close();
    }
  });
});

describe('not answered from memory', () => {
  it.each([
    ['a wait', '?wait=0', {}, 'GET', 200],
    ['a HEAD', '', {}, 'HEAD', 200],
    ['a stream', '', { accept: 'text/event-stream' }, 'GET', 200],
    ['a query that is none', '?wait=x', {}, 'GET', 422],
    ['a token that is none', '', { authorization: 'Bearer a.b.c' }, 'GET', 401],
    ['no token', '', { authorization: '' }, 'GET', 401],
  ])('is %s', async (_, query, headers, method, status) => {
    const { path } = await aWatched();
    await (await poller(who.patient, path))();
    const { answer, remembered } = await (await poller(who.patient, path + query))(
      headers as Record<string, string>,
      method,
    );
    await answer.body?.cancel();
    expect([remembered, answer.status]).toEqual([false, status]);
  });

  it.each([
    ['another clinic', who.otherManager, 404],
    ['a patient it is not assigned to', { ...who.patient, sub: 'patient-c' }, 404],
    ['ops, who see no programmes', who.ops, 403],
  ])('is the poll of %s, however often they ask', async (_, stranger, status) => {
    const { path } = await aWatched();
    await (await poller(who.patient, path))();
    const poll = await poller(stranger as Caller, path);
    for (let nth = 0; nth < 3; nth++) {
      const { answer, remembered } = await poll();
      expect([remembered, answer.status]).toEqual([false, status]);
    }
  });

  it('is one from whom the programme was taken', async () => {
    const { path, programId } = await aWatched();
    const poll = await poller(who.patient, path);
    await fromMemory(poll);
    await edge.call('DELETE', `/v1/programs/${programId}/assignments/${who.patient.sub}`, { as: who.specialist });
    expect((await poll()).answer.status).toBe(404);
  });
});

/** Another edge over the same database, with limits of its own. */
async function withEdge(change: Env, use: (call: TestEdge['call']) => Promise<void>) {
  const strict = await startEdge({ DATABASE_URL: edge.deps.config.DATABASE_URL, ...change });
  const { call, close } = await serve(strict);
  try {
    await use(call);
  } finally {
    await close();
    await strict.close();
  }
}

describe('the limits', () => {
  it('of a person hold for polls from memory, and are refused as ever', () =>
    withEdge({ RATE_PER_TOKEN: '4' }, async (call) => {
      const { path } = await aWatched();
      const left: (string | undefined)[] = [];
      for (let nth = 0; nth < 4; nth++) {
        const answer = await call('GET', path, { as: who.patient });
        left.push(/r=(\d)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
      }
      expect(left).toEqual(['3', '2', '1', '0']);
      const beyond = await call('GET', path, { as: who.patient });
      expect(await problemOf(beyond)).toMatchObject({ httpStatus: 429, code: 'too_many_requests' });
      expect(beyond.headers.get('x-frame-options')).toBe('DENY');
    }));

  it('of an address hold for polls from memory; the one of guesses does for tokens not verified yet', async () => {
    const { path } = await aWatched();
    const asks =
      (call: TestEdge['call']) =>
      async (address: string, headers: Record<string, string> = {}) =>
        (await call('GET', path, { as: who.patient, headers: { 'x-forwarded-for': address, ...headers } })).status;
    await withEdge({ RATE_PER_ADDRESS: '3', TRUSTED_PROXIES: '1' }, async (call) => {
      const from = asks(call);
      expect([await from('1.1.1.1'), await from('1.1.1.1'), await from('1.1.1.1'), await from('1.1.1.1')]).toEqual([
        200, 200, 200, 429,
      ]);
      expect(await from('2.2.2.2')).toBe(200);
    });
    await withEdge({ TRUSTED_PROXIES: '1' }, async (call) => {
      const from = asks(call);
      const authorization = `Bearer ${await tokenFor(who.patient)}`;
      expect(await from('6.6.6.6', { authorization })).toBe(200);
      for (let nth = 0; nth < 60; nth++) await from('6.6.6.6', { authorization: `Bearer guess-${nth}` });
      const fresh = { authorization: `Bearer ${await tokenFor(who.specialist)}` };
      expect([await from('6.6.6.6', fresh), await from('7.7.7.7', fresh)]).toEqual([429, 200]);
      expect(await from('6.6.6.6', { authorization })).toBe(200);
    });
  });
});
