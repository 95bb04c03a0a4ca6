import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { createVerifier, issueToken } from '../../../lib/auth/tokens.ts';

const secret = 'a-secret-for-tests-that-is-long-enough';
const org = '6f1c9a52-0d3e-4c58-8a3b-1f2e3d4c5b6a';
const key = new TextEncoder().encode(secret);
const verify = createVerifier({ secret });

/** A token with any claims, signed well. */
const signed = (claims: JWTPayload, header = { alg: 'HS256' }) =>
  new SignJWT(claims).setProtectedHeader(header).sign(key);
const soon = () => Math.floor(Date.now() / 1000) + 60;
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a token of our own', () => {
  it('says who it speaks for', async () => {
    const token = await issueToken({ secret, sub: 'ann', role: 'manager', org, ttlSeconds: 60 });
    expect(await verify(token)).toEqual({ sub: 'ann', role: 'manager', org });
  });

  it.each(['superadmin', 'ops'] as const)('of %s names no organisation', async (role) => {
    const token = await issueToken({ secret, sub: 'root', role, ttlSeconds: 60 });
    expect(await verify(token)).toEqual({ sub: 'root', role, org: null });
    await expect(issueToken({ secret, sub: 'root', role, org, ttlSeconds: 60 })).rejects.toThrow(/organisation/);
  });

  it.each(['manager', 'specialist', 'patient'] as const)(
    'is not made for a %s without an organisation',
    async (role) => {
      await expect(issueToken({ secret, sub: 'ann', role, ttlSeconds: 60 })).rejects.toThrow(/organisation/);
    },
  );
});

describe('the verifier refuses', () => {
  const refused: Record<string, () => Promise<string> | string> = {
    'a token under another secret': () => issueToken({ secret: `${secret}!`, sub: 'ann', role: 'ops', ttlSeconds: 60 }),
    'an expired token': () => issueToken({ secret, sub: 'ann', role: 'ops', ttlSeconds: -10 }),
    'a token that never expires': () => signed({ sub: 'ann', role: 'ops' }),
    'a token that is not valid yet': () => signed({ sub: 'ann', role: 'ops', exp: soon(), nbf: soon() }),
    'an unsigned token': () => `${part({ alg: 'none' })}.${part({ sub: 'ann', role: 'superadmin', exp: soon() })}.`,
    'another algorithm of the same family': () => signed({ sub: 'ann', role: 'ops', exp: soon() }, { alg: 'HS512' }),
    'an unknown role': () => signed({ sub: 'ann', role: 'root', exp: soon() }),
    'a missing role': () => signed({ sub: 'ann', exp: soon() }),
    'a missing subject': () => signed({ role: 'ops', exp: soon() }),
    'an empty subject': () => signed({ sub: '', role: 'ops', exp: soon() }),
    'a subject with a NUL': () => signed({ sub: 'a\0b', role: 'ops', exp: soon() }),
    'a manager of no organisation': () => signed({ sub: 'ann', role: 'manager', exp: soon() }),
    'a superadmin of an organisation': () => signed({ sub: 'ann', role: 'superadmin', org, exp: soon() }),
    'an organisation that is no id': () => signed({ sub: 'ann', role: 'manager', org: 'x', exp: soon() }),
    'changed claims': async () => {
      const [head, , signature] = (await signed({ sub: 'ann', role: 'ops', exp: soon() })).split('.');
      return `${head}.${part({ sub: 'ann', role: 'superadmin', exp: soon() })}.${signature}`;
    },
    'no token at all': () => '',
    'a word': () => 'token',
  };
  it.each(Object.entries(refused))('%s', async (_, make) => {
    await expect(verify(await make())).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it('another issuer or audience, where they are asked for', async () => {
    const strict = createVerifier({ secret, issuer: 'clinic', audience: 'bakehouse' });
    const claims = { secret, sub: 'ann', role: 'ops', ttlSeconds: 60 } as const;
    expect(await strict(await issueToken({ ...claims, issuer: 'clinic', audience: 'bakehouse' }))).toBeTruthy();
    for (const wrong of [{}, { issuer: 'clinic' }, { issuer: 'other', audience: 'bakehouse' }]) {
      await expect(strict(await issueToken({ ...claims, ...wrong }))).rejects.toMatchObject({ code: 'unauthorized' });
    }
  });
});

describe('with a key set', () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => {
      server.close();
      server.closeAllConnections();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  }

  async function keySet() {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
    const jwksUrl = await serve((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [jwk] })),
    );
    return { privateKey, jwk, verify: createVerifier({ jwksUrl }) };
  }

  it('takes what one of its keys has signed', async () => {
    const { privateKey, verify } = await keySet();
    const token = await new SignJWT({ sub: 'ann', role: 'manager', org, exp: soon() })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(privateKey);
    expect(await verify(token)).toEqual({ sub: 'ann', role: 'manager', org });
  });

  it('refuses an unknown key, and the public key used as a shared secret', async () => {
    const { privateKey, jwk, verify } = await keySet();
    const claims = new SignJWT({ sub: 'ann', role: 'superadmin', exp: soon() });
    const unknown = await claims.setProtectedHeader({ alg: 'ES256', kid: 'two' }).sign(privateKey);
    await expect(verify(unknown)).rejects.toMatchObject({ code: 'unauthorized' });
    const confused = await new SignJWT({ sub: 'ann', role: 'superadmin', exp: soon() })
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .sign(new TextEncoder().encode(JSON.stringify(jwk)));
    await expect(verify(confused)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it('tells an identity provider that is away from a token that is wrong', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    const token = await new SignJWT({ sub: 'ann', role: 'ops', exp: soon() })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(privateKey);
    const broken = await serve((_, response) => response.writeHead(500).end());
    const odd = await serve((_, response) => response.writeHead(200).end('<html>'));
    for (const jwksUrl of [broken, odd, 'http://127.0.0.1:9/jwks.json']) {
      await expect(createVerifier({ jwksUrl })(token)).rejects.toMatchObject({ code: 'unavailable' });
    }
  });

  it('is not combined with a secret', () => {
    expect(() => createVerifier({ secret, jwksUrl: 'https://id.test/jwks' })).toThrow(TypeError);
    expect(() => createVerifier({})).toThrow(TypeError);
  });
});
