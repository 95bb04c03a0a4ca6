import { afterEach, describe, expect, it } from 'vitest';
import { listen } from '../../../apps/edge/listen.ts';
import { type Caller, people, problemOf, startEdge, type TestEdge, tokenFor } from './fixture.ts';

const who = people();
let edge: TestEdge;
afterEach(() => edge.close());

const ask = (as: Caller | undefined, forwarded?: string, token = '') =>
  edge.call('GET', '/v1/exercises', {
    as,
    headers: {
      ...(forwarded && { 'x-forwarded-for': forwarded }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
  });

describe('the limit of one person', () => {
  it('is told with each answer, refuses what is beyond it, and is nobody else’s', async () => {
    edge = await startEdge({ RATE_PER_TOKEN: '3' });
    const left: (string | null)[] = [];
    for (let n = 0; n < 3; n++) left.push((await ask(who.manager)).headers.get('ratelimit'));
    expect(left.map((text) => /^"token";r=(\d);t=\d+$/.exec(text ?? '')?.[1])).toEqual(['2', '1', '0']);
    const beyond = await ask(who.manager);
    expect(await problemOf(beyond)).toMatchObject({ httpStatus: 429, code: 'too_many_requests' });
    expect(Number(beyond.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(beyond.headers.get('ratelimit-policy')).toBe('"token";q=3;w=60');
    expect((await ask(who.specialist)).status).toBe(200);
    // Of the same name, in another clinic.
    expect((await ask({ ...who.otherManager, sub: who.manager.sub })).status).toBe(200);
  });
});

describe('the limit of one address', () => {
  it('counts the address that our own proxy names, whatever the client claims before it', async () => {
    edge = await startEdge({ RATE_PER_ADDRESS: '2', TRUSTED_PROXIES: '1' });
    const statuses = async (...hops: string[]) => {
      const answers: number[] = [];
      for (const hop of hops) answers.push((await ask(who.manager, hop)).status);
      return answers;
    };
    expect(await statuses('1.1.1.1, 9.9.9.9', '2.2.2.2, 9.9.9.9', '3.3.3.3, 9.9.9.9', '9.9.9.9, 8.8.8.8')).toEqual([
      200, 200, 429, 200,
    ]);
  });

  it('counts the socket’s where no proxy is trusted, and no claim', async () => {
    edge = await startEdge({ RATE_PER_ADDRESS: '2' });
    const listener = await listen(edge.app, { host: '127.0.0.1', port: 0 });
    try {
      const authorization = `Bearer ${await tokenFor(who.manager)}`;
      const statuses: number[] = [];
      for (const claim of ['1.1.1.1', '2.2.2.2', '3.3.3.3']) {
        const headers = { authorization, 'x-forwarded-for': claim };
        statuses.push((await fetch(`${listener.url}/v1/exercises`, { headers })).status);
      }
      expect(statuses).toEqual([200, 200, 429]);
      expect((await fetch(`${listener.url}/healthz`)).status).toBe(200);
    } finally {
      await listener.close(0);
    }
  });

  it('stops who guesses tokens, and lets a valid one from elsewhere pass', async () => {
    edge = await startEdge({ TRUSTED_PROXIES: '1' });
    const guesses = await Promise.all(Array.from({ length: 60 }, (_, n) => ask(undefined, '6.6.6.6', `guess-${n}`)));
    expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([401]));
    expect((await ask(undefined, '6.6.6.6', 'one-more')).status).toBe(429);
    expect((await ask(who.manager, '6.6.6.6')).status).toBe(429);
    expect((await ask(who.manager, '7.7.7.7')).status).toBe(200);
  });
});
