import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createVerifier } from '../../../lib/auth/tokens.ts';

const ann = { sub: 'ann', role: 'ops', org: null };
const unauthorized = { code: 'unauthorized' };
const unavailable = { code: 'unavailable' };

let provider: Awaited<ReturnType<typeof startProvider>>;
beforeEach(async () => {
  // The clock alone: sockets need their timers.
  vi.useFakeTimers({ toFake: ['Date'] });
  provider = await startProvider();
});
afterEach(async () => {
  vi.useRealTimers();
  await provider.stop();
});
const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);

/** An identity provider whose keys may be changed, that counts how often it is asked and may be stopped. */
async function startProvider() {
  const keys = new Map<string, Awaited<ReturnType<typeof generateKeyPair>>>();
  const seen = { asked: 0, status: 200 };
  let server: Server | undefined;
  const start = async (port = 0) => {
    server = createServer(async (_, response) => {
      seen.asked += 1;
      const published = [...keys].map(async ([kid, { publicKey }]) => ({
        ...(await exportJWK(publicKey)),
        kid,
        use: 'sig',
      }));
      response.writeHead(seen.status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ keys: await Promise.all(published) }));
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await start();
  const addKey = async (kid: string, alg = 'ES256') => {
    const pair = await generateKeyPair(alg, { extractable: true });
    keys.set(kid, pair);
    return pair;
  };
  await addKey('one');
  return {
    seen,
    keys,
    addKey,
    url: `http://127.0.0.1:${port}/jwks.json`,
    stop: async () => {
      if (!server?.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
    start: () => start(port),
  };
}

/** A token of Ann's, with these claims changed, signed by the key of this id. */
function signed(kid: string, change: Record<string, unknown> = {}, key = provider.keys.get(kid)?.privateKey) {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ sub: 'ann', role: 'ops', exp: now + 3_600, ...change })
    .setProtectedHeader({ alg: 'ES256', kid })
    .sign(key!);
}

describe('a key set', () => {
  it('is fetched once for all who ask, and kept', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    const token = await signed('one');
    expect(await Promise.all([verify(token), verify(token), verify(token)])).toEqual([ann, ann, ann]);
    pass(9 * 60_000);
    expect(await verify(token)).toEqual(ann);
    expect(provider.seen.asked).toBe(1);
  });

  it('that has got a new key is fetched once more for it', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    await verify(await signed('one'));
    await provider.addKey('two');
    pass(31_000);
    const token = await signed('two');
    expect(await Promise.all([verify(token), verify(token)])).toEqual([ann, ann]);
    expect(await verify(await signed('one'))).toEqual(ann);
    expect(provider.seen.asked).toBe(2);
  });

  it('is not fetched for made-up key ids more than every half minute', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    await verify(await signed('one'));
    const stranger = await generateKeyPair('ES256');
    const madeUp = async (nth: number) => verify(await signed(`made-up-${nth}`, {}, stranger.privateKey));
    for (let nth = 0; nth < 20; nth++) await expect(madeUp(nth)).rejects.toMatchObject(unauthorized);
    expect(provider.seen.asked).toBe(1);
    pass(31_000);
    for (let nth = 0; nth < 20; nth++) await expect(madeUp(nth)).rejects.toMatchObject(unauthorized);
    expect(provider.seen.asked).toBe(2);
  });

  it('without a key any more refuses what that has signed, within ten minutes', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    const token = await signed('one');
    await verify(token);
    provider.keys.clear();
    await provider.addKey('two');
    pass(10 * 60_000 + 1);
    await expect(verify(token)).rejects.toMatchObject(unauthorized);
  });
});

describe('while the provider is away', () => {
  it.each(['gone', 'broken'])('(%s) keys that are known go on, for a day, and others are a 503', async (how) => {
    const verify = createVerifier({ jwksUrl: provider.url });
    const later = await signed('one', { exp: Math.floor(Date.now() / 1000) + 2 * 86_400 });
    await verify(later);
    await provider.addKey('two');
    if (how === 'gone') await provider.stop();
    else provider.seen.status = 500;
    pass(11 * 60_000);
    expect(await verify(later)).toEqual(ann);
    await expect(verify(await signed('two'))).rejects.toMatchObject(unavailable);
    pass(23 * 3_600_000);
    expect(await verify(later)).toEqual(ann);
    pass(3_600_000);
    await expect(verify(later)).rejects.toMatchObject(unavailable);
  });

  it('a known key does not make a forgery good', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    await verify(await signed('one'));
    await provider.stop();
    pass(11 * 60_000);
    const stranger = await generateKeyPair('ES256');
    await expect(verify(await signed('one', {}, stranger.privateKey))).rejects.toMatchObject(unauthorized);
    await expect(verify(await signed('one', { exp: 1 }))).rejects.toMatchObject(unauthorized);
  });

  it('it is asked again only every ten seconds, and heard at once when it is back', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    await verify(await signed('one'));
    await provider.addKey('two');
    provider.seen.status = 500;
    pass(31_000);
    const token = await signed('two');
    for (let nth = 0; nth < 20; nth++) await expect(verify(token)).rejects.toMatchObject(unavailable);
    expect(provider.seen.asked).toBe(2);
    provider.seen.status = 200;
    pass(10_000);
    expect(await verify(token)).toEqual(ann);
    expect(provider.seen.asked).toBe(3);
  });

  it('from the start, nobody comes in, and everybody when it is there', async () => {
    await provider.stop();
    const verify = createVerifier({ jwksUrl: provider.url });
    const token = await signed('one');
    await expect(verify(token)).rejects.toMatchObject(unavailable);
    await provider.start();
    pass(10_000);
    expect(await verify(token)).toEqual(ann);
  });
});

describe('a token under a key set', () => {
  it('is refused with no signature, and with a published key as the secret of an HMAC, in any of its forms', async () => {
    await provider.addKey('rsa', 'RS256');
    const verify = createVerifier({ jwksUrl: provider.url });
    const claims = { sub: 'ann', role: 'superadmin', exp: Math.floor(Date.now() / 1000) + 60 };
    for (const [kid, { publicKey }] of provider.keys) {
      const jwk = await exportJWK(publicKey);
      const spki = await exportSPKI(publicKey);
      for (const secret of [spki, spki.trim(), JSON.stringify(jwk), jwk.x ?? jwk.n ?? '']) {
        const confused = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid });
        await expect(verify(await confused.sign(new TextEncoder().encode(secret)))).rejects.toMatchObject(unauthorized);
      }
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
      for (const alg of ['none', 'None', 'NONE']) {
        await expect(verify(`${part({ alg, kid })}.${part(claims)}.`)).rejects.toMatchObject(unauthorized);
      }
    }
  });

  it('is held to issuer, audience, times, role and organisation', async () => {
    const verify = createVerifier({ jwksUrl: provider.url, issuer: 'clinic', audience: 'bakehouse' });
    const now = Math.floor(Date.now() / 1000);
    const right = { iss: 'clinic', aud: ['other', 'bakehouse'] };
    expect(await verify(await signed('one', right))).toEqual(ann);
    const wrong: Record<string, unknown>[] = [
      { iss: 'elsewhere' },
      { iss: undefined },
      { aud: 'other' },
      { aud: undefined },
      { exp: undefined },
      { nbf: now + 60 },
      { role: undefined },
      { role: 'root' },
      { role: ['ops'] },
      { role: 'manager' },
      { org: '6f1c9a52-0d3e-4c58-8a3b-1f2e3d4c5b6a' },
    ];
    for (const change of wrong) {
      const token = await signed('one', { ...right, ...change });
      await expect(verify(token), JSON.stringify(change)).rejects.toMatchObject(unauthorized);
    }
  });

  it('is forgiven five seconds of another clock, before and after, and no more', async () => {
    const verify = createVerifier({ jwksUrl: provider.url });
    vi.setSystemTime(new Date('2026-03-14T09:26:53Z'));
    const now = Date.now() / 1000;
    expect(await verify(await signed('one', { exp: now - 4 }))).toEqual(ann);
    expect(await verify(await signed('one', { nbf: now + 5 }))).toEqual(ann);
    await expect(verify(await signed('one', { exp: now - 5 }))).rejects.toMatchObject(unauthorized);
    await expect(verify(await signed('one', { nbf: now + 6 }))).rejects.toMatchObject(unauthorized);
  });
});
