import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { createSigner, type SignedFor } from '../../../lib/outbound/secret.ts';

const signer = createSigner(['a-key-of-this-installation-0123456789']);
const endpoint = (change: Partial<SignedFor> = {}): SignedFor => ({
  ...{ id: randomUUID(), secretVersion: 1, previousSigning: 0 },
  ...change,
});
const verifies = (secret: string, body: string, headers: Record<string, string>) => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
};
const body = '{"type":"program.ready"}';

describe('a signature', () => {
  it('is verified by the Standard Webhooks library, for that body, id and time only', () => {
    fc.assert(
      fc.property(fc.json(), fc.string(), (payload, other) => {
        const one = endpoint();
        const headers = signer.sign(one, 'id-1', payload, new Date());
        const secret = signer.secretOf(one);
        expect(verifies(secret, payload, headers)).toBe(true);
        expect(verifies(secret, `${payload} `, headers)).toBe(false);
        expect(verifies(secret, payload, { ...headers, 'webhook-id': `id-2${other}` })).toBe(false);
      }),
      { numRuns: 30 },
    );
  });

  it('of an old message is refused by the library', () => {
    const one = endpoint();
    const headers = signer.sign(one, 'id-1', body, new Date(Date.now() - 10 * 60_000));
    expect(verifies(signer.secretOf(one), body, headers)).toBe(false);
  });

  it.each([
    [0, [false, false, true]],
    [1, [false, true, true]],
    [2, [true, true, true]],
  ])('is made with the newest secret and the %d before it that still sign', (previousSigning, expected) => {
    const one = endpoint({ secretVersion: 3, previousSigning });
    const headers = signer.sign(one, 'id-1', body, new Date());
    const secrets = [1, 2, 3].map((secretVersion) => signer.secretOf({ ...one, secretVersion }));
    expect(secrets.map((secret) => verifies(secret, body, headers))).toEqual(expected);
  });

  it('is made with every key while one is replaced, and new secrets come of the first', () => {
    const [old, next] = ['the-old-key-of-this-installation-012', 'the-new-key-of-this-installation-012'] as const;
    const one = endpoint();
    const replacing = createSigner([next, old]);
    const headers = replacing.sign(one, 'id-1', body, new Date());
    for (const key of [old, next]) expect(verifies(createSigner([key]).secretOf(one), body, headers)).toBe(true);
    expect(replacing.secretOf(one)).toBe(createSigner([next]).secretOf(one));
  });
});

it('every endpoint and every rotation has a secret of its own, of 32 bytes, the same each time', () => {
  const one = endpoint();
  const all = [one, { ...one, secretVersion: 2 }, endpoint()].map(signer.secretOf);
  expect(new Set(all).size).toBe(3);
  for (const secret of all) {
    expect(secret.startsWith('whsec_')).toBe(true);
    expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
  }
  expect(signer.secretOf(one)).toBe(all[0]);
});
