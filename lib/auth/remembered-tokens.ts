import { hash } from 'node:crypto';
import { decodeJwt } from 'jose';
import { createMemory } from '../memory.ts';
import type { Verifier, Who } from './tokens.ts';

export interface RememberedTokens {
  /** As the verifier it was made of, but a token that was verified a moment ago is not verified again. */
  verify: Verifier;
  /** Who such a token speaks for, at once; undefined for any other. */
  known(token: string): Verified | undefined;
}

export interface Verified {
  who: Who;
  /** Until when that may be believed without another look; milliseconds since the epoch. */
  until: number;
}

/**
 * How long a verified token is taken without another look. It bounds how much later than without the memory the end of
 * a signing key is noticed; jose itself keeps a fetched key set for ten minutes.
 */
const REMEMBERED_MS = 30_000;
const MAX_TOKENS = 10_000;

/**
 * Remembers who verified tokens speak for, for half a minute and never past their `exp`: to check a signature costs more
 * than all else that a poll needs, and a client sends the same token with each.
 *
 * Safe, because a token's bytes decide alone what is in it: only its SHA-256 is kept, nothing is remembered that was not
 * verified in full, and what was refused is verified anew each time.
 */
export function rememberTokens(verify: Verifier): RememberedTokens {
  const memory = createMemory<Verified>({ ms: REMEMBERED_MS, max: MAX_TOKENS, keep: ({ until }) => until > 0 });
  const nameOf = (token: string) => hash('sha256', token, 'base64');
  const isValid = ({ until }: Verified) => Date.now() < until;
  return {
    verify: async (token) => {
      const name = nameOf(token);
      let isNew = false;
      const verified = await memory.get(name, async () => {
        isNew = true;
        return { who: await verify(token), until: Math.min(expiryOf(token), Date.now() + REMEMBERED_MS) };
      });
      // Past its `exp` it is the verifier's again, which forgives clocks some seconds.
      return isNew || isValid(verified) ? verified.who : verify(token);
    },
    known: (token) => {
      const verified = memory.peek(nameOf(token));
      return verified && isValid(verified) ? verified : undefined;
    },
  };
}

/** Milliseconds since the epoch; 0 where that cannot be told, and the token is not remembered. */
function expiryOf(token: string): number {
  try {
    return (decodeJwt(token).exp ?? 0) * 1_000;
  } catch {
    return 0;
  }
}
