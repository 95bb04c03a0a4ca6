import { SignJWT } from 'jose';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { listen } from '../../../apps/edge/listen.ts';
import type { Env } from '../../../lib/config/env.ts';
import { OPS_PASSWORD, people, problemOf, startEdge, type TestEdge, tokenFor } from './fixture.ts';

const who = people();
const SAME_SITE = { 'sec-fetch-site': 'same-origin' };
const PERSON = { accept: 'text/html,application/xhtml+xml' };
let edge: TestEdge;

beforeAll(async () => {
  edge = await startEdge({ TRUSTED_PROXIES: '1' });
});
afterAll(() => edge.close());
afterEach(() => {
  vi.useRealTimers();
});

const post = (path: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}, to = edge) =>
  to.call('POST', path, {
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...SAME_SITE, ...headers },
  });
const logIn = (fields: Record<string, string>, headers = {}, to = edge) => post('/ops/login', fields, headers, to);
const right = { username: 'ops', password: OPS_PASSWORD };

/** What an answer has a browser keep: name and value, and the rest in small letters. */
function cookieOf(answer: Response) {
  const [pair = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
  const [name, value] = pair.split(/=(.*)/s);
  return { name, value, pair, attributes: new Set(attributes.map((text) => text.toLowerCase())) };
}
const maxAgeOf = (answer: Response) =>
  Number([...cookieOf(answer).attributes].find((text) => text.startsWith('max-age='))?.slice(8));
const board = (cookie: string, headers: Record<string, string> = {}, to = edge) =>
  to.call('GET', '/ops/queues', { headers: { cookie, ...headers } });

describe('the login', () => {
  it('is a form without a script that nothing may frame and nobody stores', async () => {
    const answer = await edge.call('GET', '/ops/login', {});
    const page = await answer.text();
    expect(answer.status).toBe(200);
    expect(page).toContain('<form method="post" action="/ops/login">');
    expect(page).not.toMatch(/<script|<style|style=|\son\w+=|http/i);
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('with the password opens the pages by a cookie that holds no password, for a working day', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const answer = await logIn(right);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/ops/queues']);
    const { name, value, pair, attributes } = cookieOf(answer);
    expect(name).toBe('bakehouse_token');
    expect(attributes).toEqual(new Set(['max-age=28800', 'path=/', 'httponly', 'samesite=strict']));
    expect(Buffer.from(value ?? '', 'base64url').toString()).not.toContain(OPS_PASSWORD);
    expect((await board(pair)).status).toBe(200);
  });

  it.each(['ops', 'superadmin'] as const)('with a token of %s lasts no longer than the token', async (role) => {
    const answer = await logIn({ token: `  ${await tokenFor(who[role])}\n` });
    expect(answer.status).toBe(303);
    expect(maxAgeOf(answer)).toBeGreaterThan(50);
    expect(maxAgeOf(answer)).toBeLessThanOrEqual(60);
    expect((await board(cookieOf(answer).pair)).status).toBe(200);
  });

  it.each(['manager', 'specialist', 'patient'] as const)('is refused to a %s, and sets no cookie', async (role) => {
    const answer = await logIn({ token: await tokenFor(who[role]) });
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(await problemOf(answer)).toMatchObject({ httpStatus: 403, code: 'forbidden' });
  });

  it.each([
    ['a wrong password', { username: 'ops', password: `${OPS_PASSWORD}!` }],
    ['a wrong name', { username: 'root', password: OPS_PASSWORD }],
    ['no password', { username: 'ops', password: '' }],
    ['nothing', {}],
    ['a token that is none', { token: 'a.b.c' }],
    ['a token beside the right password', { ...right, token: 'a.b.c' }],
  ])('is refused with %s, to a script as a problem, to a person as the form', async (_, fields) => {
    const answer = await logIn(fields);
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(await problemOf(answer)).toMatchObject({ httpStatus: 401, code: 'unauthorized' });
    const page = await logIn(fields, PERSON);
    expect([page.status, page.headers.get('set-cookie')]).toEqual([401, null]);
    expect(await page.text()).toContain('role="alert"');
  });

  it('takes no field that is too long, and no file', async () => {
    expect(await problemOf(await logIn({ token: 'x'.repeat(17_000) }))).toMatchObject({ httpStatus: 422 });
    expect(await problemOf(await logIn({ token: 'x'.repeat(40_000) }))).toMatchObject({ httpStatus: 413 });
    const streamed = { 'content-type': 'multipart/form-data; boundary=here', ...SAME_SITE };
    const long = await edge.call('POST', '/ops/login', {
      body: new Blob(['x'.repeat(40_000)]).stream(),
      headers: streamed,
    });
    expect(await problemOf(long)).toMatchObject({ httpStatus: 413 });
    const form = new FormData();
    form.set('token', new Blob(['x']), 'token.txt');
    const answer = await edge.app.request('/ops/login', { method: 'POST', body: form, headers: SAME_SITE });
    expect(await problemOf(answer)).toMatchObject({ httpStatus: 422, errors: [{ path: 'token' }] });
  });

  it.each([
    ['multipart without a boundary', 'multipart/form-data', 'xx'],
    ['multipart whose boundary never comes', 'multipart/form-data; boundary=here', 'xx'],
    ['multipart that is cut off', 'multipart/form-data; boundary=here', '--here\r\nContent-Disposition: form-data; na'],
    ['multipart of nothing', 'multipart/form-data; boundary=here', ''],
  ])('refuses a form that cannot be read, and no error is logged: %s', async (_, type, body) => {
    const errors: unknown[] = [];
    const log = pino({ level: 'error' }, { write: (line: string) => errors.push(line) });
    const heard = await startEdge({}, { log });
    try {
      const answer = await heard.call('POST', '/ops/login', { body, headers: { 'content-type': type, ...SAME_SITE } });
      expect(await problemOf(answer)).toMatchObject({ httpStatus: 400, code: 'malformed_body' });
      expect(errors).toEqual([]);
    } finally {
      await heard.close();
    }
  });

  it('from another site is refused, and so is a logout', async () => {
    for (const foreign of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': '', origin: 'https://evil.test' }]) {
      for (const path of ['/ops/login', '/ops/logout']) {
        const answer = await post(path, right, foreign);
        expect(answer.headers.get('set-cookie')).toBeNull();
        expect(await problemOf(answer)).toMatchObject({ httpStatus: 403, code: 'forbidden' });
      }
    }
  });

  it('stops who guesses, and nobody else', async () => {
    const from = (address: string, fields: Record<string, string>) => logIn(fields, { 'x-forwarded-for': address });
    for (let nth = 0; nth < 60; nth++) expect((await from('6.6.6.6', { token: `guess-${nth}` })).status).toBe(401);
    expect(await problemOf(await from('6.6.6.6', right))).toMatchObject({ httpStatus: 429, code: 'too_many_requests' });
    expect((await from('7.7.7.7', right)).status).toBe(303);
  });
});

describe('where the way is https', () => {
  it.each<[string, Env, Record<string, string>]>([
    ['a trusted proxy says so', { TRUSTED_PROXIES: '1' }, { 'x-forwarded-proto': 'https' }],
    ['it is production', { NODE_ENV: 'production', OPS_PASSWORD: '5f0c2c1d9e7b4a36' }, {}],
  ])('because %s, the cookie is secure and bound to the host, and no other is taken', async (_, change, headers) => {
    const secure = await startEdge(change);
    try {
      const password = change.OPS_PASSWORD ?? OPS_PASSWORD;
      const answer = await logIn({ username: 'ops', password }, headers, secure);
      const { name, value, pair, attributes } = cookieOf(answer);
      expect(name).toBe('__Host-bakehouse_token');
      expect(attributes).toEqual(new Set(['max-age=28800', 'path=/', 'httponly', 'secure', 'samesite=strict']));
      expect((await board(pair, headers, secure)).status).toBe(200);
      expect((await board(`bakehouse_token=${value}`, headers, secure)).status).toBe(401);
    } finally {
      await secure.close();
    }
  });

  it('is nobody’s claim where no proxy is trusted', async () => {
    const direct = await startEdge();
    try {
      expect(cookieOf(await logIn(right, { 'x-forwarded-proto': 'https' }, direct)).name).toBe('bakehouse_token');
    } finally {
      await direct.close();
    }
  });
});

describe('a login', () => {
  it('ends with the logout', async () => {
    const answer = await post('/ops/logout', {}, { cookie: cookieOf(await logIn(right)).pair });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/ops/login']);
    expect([cookieOf(answer).name, cookieOf(answer).value, maxAgeOf(answer)]).toEqual(['bakehouse_token', '', 0]);
  });

  it('by password ends with the password, is no token for the API, and none that somebody else has signed', async () => {
    const { pair, value = '' } = cookieOf(await logIn(right));
    const api = await edge.call('GET', '/v1/programs', { headers: { authorization: `Bearer ${value}` } });
    expect(api.status).toBe(401);
    expect((await edge.call('GET', '/ops/queues', { headers: { authorization: `Bearer ${value}` } })).status).toBe(401);
    const forged = await new SignJWT({ role: 'ops', sub: 'ops', aud: 'bakehouse-ops-pages', exp: 4_000_000_000 })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(new TextEncoder().encode(OPS_PASSWORD));
    expect((await board(`bakehouse_token=${forged}`)).status).toBe(401);
    const changed = await startEdge({ OPS_PASSWORD: 'another-password-for-ops' });
    try {
      expect((await board(pair, {}, changed)).status).toBe(401);
    } finally {
      await changed.close();
    }
  });

  it('is asked of a person who opens the pages without one, and a challenge of anything else', async () => {
    for (const cookie of ['', 'bakehouse_token=a.b.c']) {
      const person = await board(cookie, PERSON);
      expect([person.status, person.headers.get('location')]).toEqual([303, '/ops/login']);
      expect((await board(cookie)).status).toBe(401);
    }
    const wrong = { ...PERSON, authorization: `Basic ${Buffer.from('ops:wrong').toString('base64')}` };
    expect((await board('', wrong)).status).toBe(401);
  });

  it('works over a socket, where a browser follows', async () => {
    const listener = await listen(edge.app, { host: '127.0.0.1', port: 0 });
    try {
      const body = new URLSearchParams(right);
      const answer = await fetch(`${listener.url}/ops/login`, {
        method: 'POST',
        body,
        headers: SAME_SITE,
        redirect: 'manual',
      });
      const page = await fetch(`${listener.url}/ops/queues`, { headers: { cookie: cookieOf(answer).pair } });
      expect([answer.status, page.status]).toEqual([303, 200]);
    } finally {
      await listener.close(1_000);
    }
  });
});

describe('without a password set', () => {
  it('only a token logs in, and the form asks for nothing else', async () => {
    const strict = await startEdge({ OPS_PASSWORD: undefined });
    try {
      expect(await (await strict.call('GET', '/ops/login', {})).text()).not.toContain('name="password"');
      for (const password of ['', 'undefined']) {
        expect((await logIn({ username: 'ops', password }, {}, strict)).status).toBe(401);
      }
      expect((await logIn({ token: await tokenFor(who.ops) }, {}, strict)).status).toBe(303);
    } finally {
      await strict.close();
    }
  });
});
