import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Who } from '../../lib/auth/tokens.ts';
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

/** What a request tells of where it comes from. */
interface Origin {
  env: Context['env'];
  /** The value of `X-Forwarded-For`. */
  forwardedFor: string | null | undefined;
}

/** Where a request comes from; undefined where it did not come through a socket. */
function addressOf({ env, forwardedFor }: Origin, trustedProxies: number): string | undefined {
  if (trustedProxies > 0) {
    const hops = (forwardedFor ?? '').split(',').map((hop) => hop.trim());
    // Each proxy appends whom it heard from: the outermost trusted one names the client.
    const told = hops.at(-trustedProxies);
    if (told) return told;
  }
  return (env as Partial<HttpBindings> | undefined)?.incoming?.socket.remoteAddress;
}

/** draft-ietf-httpapi-ratelimit-headers-10: what is left of a window, and what it is. */
const said = (name: string, quota: number, { remainingPoints, msBeforeNext }: RateLimiterRes) => ({
  'ratelimit-policy': `"${name}";q=${quota};w=${WINDOW_S}`,
  ratelimit: `"${name}";r=${Math.max(0, remainingPoints)};t=${Math.ceil(msBeforeNext / 1_000)}`,
});

function say(c: Context, ...given: Parameters<typeof said>): void {
  for (const [name, value] of Object.entries(said(...given))) c.header(name, value);
}

const isRefusal = (thrown: unknown): thrown is RateLimiterRes =>
  typeof thrown === 'object' && thrown !== null && 'msBeforeNext' in thrown;

export type RateLimiter = ReturnType<typeof createRateLimits>;

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

  const guessedTooOften = async (address: string) => {
    const guesses = await refused.get(address);
    return guesses && guesses.remainingPoints <= 0 ? guesses : null;
  };
  const keyOf = ({ sub, org }: Who) => `${org ?? ''} ${sub}`;

  const byAddress: MiddlewareHandler<EdgeEnv> = async (c, next) => {
    const address = addressOf({ env: c.env, forwardedFor: c.req.header('X-Forwarded-For') }, trustedProxies);
    if (address === undefined) return next();
    const guesses = await guessedTooOften(address);
    if (guesses) throw new AppError('too_many_requests', { retryAfterMs: guesses.msBeforeNext });
    await take(c, addresses, 'address', address);
    await next();
    if (c.res.status === 401) await refused.consume(address).catch(() => undefined);
  };
  const byToken: MiddlewareHandler<EdgeEnv> = async (c, next) => {
    await take(c, tokens, 'token', keyOf(c.var.who));
    await next();
  };
  /**
   * Takes one request of both for an answer that goes past the middleware, and says in headers what is left; null where
   * it is to be refused, which is the middleware's to do.
   */
  const takeAtOnce = async (origin: Origin, who: Who): Promise<Record<string, string> | null> => {
    const address = addressOf(origin, trustedProxies);
    try {
      if (address !== undefined) {
        if (await guessedTooOften(address)) return null;
        await addresses.consume(address);
      }
      return said('token', perToken, await tokens.consume(keyOf(who)));
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown;
      return null;
    }
  };
  return { byAddress, byToken, takeAtOnce };
}
