import { hkdfSync } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

export interface SignedFor {
  id: string;
  secretVersion: number;
  /** How many of the secrets before the current one sign, too. */
  previousSigning: number;
}

export interface Signer {
  /** The endpoint's current secret, as its owner is shown it: `whsec_` and 32 bytes in base64 (Standard Webhooks). */
  secretOf(endpoint: Pick<SignedFor, 'id' | 'secretVersion'>): string;
  /** The headers of one attempt at `at`. Signed with several secrets where rotations are fresh: any of them verifies. */
  sign(endpoint: SignedFor, messageId: string, body: string, at: Date): Record<string, string>;
}

const SECRET_BYTES = 32;

/**
 * Derives the secrets of all endpoints from the installation's key (HKDF-SHA256, RFC 5869), so that none is stored. New
 * secrets come of the first key; each key signs, so that one can be replaced while receivers learn their new secrets.
 */
export function createSigner(keys: readonly [string, ...string[]]): Signer {
  const derive = (key: string, endpointId: string, version: number) => {
    const bytes = hkdfSync('sha256', key, endpointId, `bakehouse webhook secret ${version}`, SECRET_BYTES);
    return `whsec_${Buffer.from(bytes).toString('base64')}`;
  };
  return {
    secretOf: ({ id, secretVersion }) => derive(keys[0], id, secretVersion),
    sign: ({ id, secretVersion, previousSigning }, messageId, body, at) => {
      const versions = Array.from({ length: 1 + previousSigning }, (_, back) => secretVersion - back);
      const secrets = keys.flatMap((key) => versions.map((version) => derive(key, id, version)));
      return {
        'webhook-id': messageId,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(messageId, at, body)).join(' '),
      };
    },
  };
}
