import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context, MiddlewareHandler } from 'hono';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { AppError } from '../../lib/errors.ts';
import type { EdgeEnv } from './router.ts';

export interface RateLimits {
  /** Requests a minute of whoever one token speaks for. */
  perToken: number;
  /** Requests a minute from one address, which may be a whole clinic's. */
  perAddress: number;
  /** How many proxies before us add to `X-Forwarded-For`; what stands before theirs is anybody's claim. */
  trustedProxies: number;
}

const WINDOW_S = 60;
/** Refused tokens a minute from one address: enough for a clock that is off, too few for guessing. */
const MAX_REFUSED = 60;

/** Where a request comes from; undefined where it did not come through a socket. */
export function addressOf(c: Context, trustedProxies: number): string | undefined {
  if (trustedProxies > 0) {
    const hops = (c.req.header('X-Forwarded-For') ?? '').split(',').map((hop) => hop.trim());
    // Each proxy appends whom it heard from: the outermost trusted one names the client.
    const told = hops.at(-trustedProxies);
    if (told) return told;
  }
  try {
    return getConnInfo(c).remote.address;
  } catch {
    return undefined;
  }
}

/** draft-ietf-httpapi-ratelimit-headers-10: what is left of a window, and what it is. */
function say(c: Context, name: string, quota: number, { remainingPoints, msBeforeNext }: RateLimiterRes): void {
  c.header('RateLimit-Policy', `"${name}";q=${quota};w=${WINDOW_S}`);
  c.header('RateLimit', `"${name}";r=${Math.max(0, remainingPoints)};t=${Math.ceil(msBeforeNext / 1_000)}`);
}

const isRefusal = (thrown: unknown): thrown is RateLimiterRes =>
  typeof thrown === 'object' && thrown !== null && 'msBeforeNext' in thrown;

/**
 * Bounds what one address and one person may ask, each process for itself: so a limit is of one edge, and costs no
 * exchange with Redis for each request. `byAddress` stands before the authentication, `byToken` after it.
 */
export function createRateLimits({ perToken, perAddress, trustedProxies }: RateLimits) {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: WINDOW_S });
  const [addresses, tokens, refused] = [limiter(perAddress), limiter(perToken), limiter(MAX_REFUSED)];

  const take = async (c: Context, by: RateLimiterMemory, name: string, key: string) => {
    try {
      say(c, name, by.points, await by.consume(key));
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown;
      say(c, name, by.points, thrown);
      throw new AppError('too_many_requests', { retryAfterMs: thrown.msBeforeNext });
    }
  };

  const byAddress: MiddlewareHandler<EdgeEnv> = async (c, next) => {
    const address = addressOf(c, trustedProxies);
    if (address === undefined) return next();
    const guesses = await refused.get(address);
    if (guesses && guesses.remainingPoints <= 0) {
      throw new AppError('too_many_requests', { retryAfterMs: guesses.msBeforeNext });
    }
    await take(c, addresses, 'address', address);
    await next();
    if (c.res.status === 401) await refused.consume(address).catch(() => undefined);
  };
  const byToken: MiddlewareHandler<EdgeEnv> = async (c, next) => {
    const { sub, org } = c.var.who;
    await take(c, tokens, 'token', `${org ?? ''} ${sub}`);
    await next();
  };
  return { byAddress, byToken };
}
