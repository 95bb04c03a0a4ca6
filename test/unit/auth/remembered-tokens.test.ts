import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { rememberTokens } from '../../../lib/auth/remembered-tokens.ts';
import { createVerifier, issueToken } from '../../../lib/auth/tokens.ts';
import { AppError } from '../../../lib/errors.ts';

const secret = 'a-secret-for-tests-that-is-long-enough';
const ops = { sub: 'ann', role: 'ops', org: null };

/** A real verifier whose every look is counted, and which may be told that a key is gone. */
function remembered() {
  const real = createVerifier({ secret });
  const seen = { looks: 0, revoked: false };
  const tokens = rememberTokens(async (token) => {
    seen.looks += 1;
    if (seen.revoked) throw new AppError('unauthorized');
    return real(token);
  });
  return { ...tokens, seen };
}
const token = (ttlSeconds = 600) => issueToken({ secret, sub: 'ann', role: 'ops', ttlSeconds });

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a token that was verified', () => {
  it('is not verified again for half a minute, and then is', async () => {
    const { verify, known, seen } = remembered();
    const mine = await token();
    expect(known(mine)).toBeUndefined();
    expect(await Promise.all([verify(mine), verify(mine)])).toEqual([ops, ops]);
    const verified = { who: ops, until: Date.now() + 30_000 };
    expect([await verify(mine), known(mine), seen.looks]).toEqual([ops, verified, 1]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(known(mine)).toBeUndefined();
    expect(await verify(mine)).toEqual(ops);
    expect(seen.looks).toBe(2);
  });

  it('is refused within half a minute of its key’s end', async () => {
    const { verify, seen } = remembered();
    const mine = await token();
    await verify(mine);
    seen.revoked = true;
    await vi.advanceTimersByTimeAsync(30_000);
    await expect(verify(mine)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it('is not remembered past its exp, and refused when the clocks’ tolerance is over, too', async () => {
    const { verify, known } = remembered();
    const mine = await token(10);
    await verify(mine);
    expect(known(mine)?.until).toBe(Math.floor(Date.now() / 1_000) * 1_000 + 10_000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(known(mine)).toBeUndefined();
    expect(await verify(mine)).toEqual(ops);
    await vi.advanceTimersByTimeAsync(5_000);
    await expect(verify(mine)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it('is another one than the same with one character changed, or cut', async () => {
    const { verify, known } = remembered();
    const mine = await token();
    await verify(mine);
    const last = mine.at(-1) === 'A' ? 'B' : 'A';
    for (const other of [`${mine.slice(0, -1)}${last}`, mine.slice(0, -1), `${mine}A`, '']) {
      expect(known(other)).toBeUndefined();
      await expect(verify(other)).rejects.toMatchObject({ code: 'unauthorized' });
    }
  });
});

describe('what was refused', () => {
  it('is verified anew each time, and not known', async () => {
    const { verify, known, seen } = remembered();
    for (const looks of [1, 2]) {
      await expect(verify('a.b.c')).rejects.toMatchObject({ code: 'unauthorized' });
      expect([known('a.b.c'), seen.looks]).toEqual([undefined, looks]);
    }
  });

  it('for want of the key set is tried again at once', async () => {
    let isAway = true;
    const real = createVerifier({ secret });
    const { verify } = rememberTokens(async (given) => {
      if (isAway) throw new AppError('unavailable');
      return real(given);
    });
    const mine = await token();
    await expect(verify(mine)).rejects.toMatchObject({ code: 'unavailable' });
    isAway = false;
    expect(await verify(mine)).toEqual(ops);
  });
});
