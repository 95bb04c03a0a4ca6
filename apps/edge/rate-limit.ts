import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import type { Who } from '../../lib/auth/tokens.ts';
import { AppError } from '../../lib/errors.ts';
import { createWindowCounter, type Standing, type WindowCounter } from '../../lib/window-counter.ts';
import type { EdgeEnv } from './router.ts';

export interface RateLimits {
  /** Requests a minute of whoever one token speaks for. */
  perToken: number;
  /** Requests a minute from one address, which may be a whole clinic's. */
  perAddress: number;
  /** How many proxies before us add to `X-Forwarded-For`; what stands before theirs is anybody's claim. */
  trustedProxies: number;
  /** Whether the token of this `Authorization` was verified lately: whose it is goes on being served beside one who guesses. */
  isVerified: (authorization: string | undefined) => boolean;
}

const WINDOW_S = 60;
/** Refused tokens a minute from one address: enough for a clock that is off, too few for guessing. */
const MAX_REFUSED = 60;

/** What a request tells of where it comes from. */
interface Origin {
  /** Undefined where it did not come through one. */
  socket: { remoteAddress?: string | undefined } | undefined;
  /** The value of `X-Forwarded-For`. */
  forwardedFor: string | undefined;
}

function addressOf({ socket, forwardedFor }: Origin, trustedProxies: number): string | undefined {
  if (trustedProxies > 0) {
    const hops = (forwardedFor ?? '').split(',').map((hop) => hop.trim());
    // Each proxy appends whom it heard from: the outermost trusted one names the client.
    const told = hops.at(-trustedProxies);
    if (told) return told;
  }
  return socket?.remoteAddress;
}

const originOf = (c: Context): Origin => ({
  socket: (c.env as Partial<HttpBindings> | undefined)?.incoming?.socket,
  forwardedFor: c.req.header('X-Forwarded-For'),
});

/** draft-ietf-httpapi-ratelimit-headers-10: what is left of a window, and what it is. */
const said = (name: string, quota: number, { left, endsInMs }: Standing) =>
  [
    ...['ratelimit-policy', `"${name}";q=${quota};w=${WINDOW_S}`],
    ...['ratelimit', `"${name}";r=${left};t=${Math.ceil(endsInMs / 1_000)}`],
  ] as const;

function take(c: Context, by: WindowCounter, name: string, key: string): void {
  const standing = by.take(key);
  const [policy, allowed, limit, left] = said(name, by.limit, standing);
  c.header(policy, allowed);
  c.header(limit, left);
  if (!standing.allowed) throw new AppError('too_many_requests', { retryAfterMs: standing.endsInMs });
}

/** What a person is counted by: a `sub` is one person's only within an organisation. */
export const keyOf = ({ sub, org }: Who) => `${org ?? ''} ${sub}`;

export type RateLimiter = ReturnType<typeof createRateLimits>;

/**
 * Bounds what one address and one person may ask, each process for itself: so a limit is of one edge, and costs no
 * exchange with Redis for each request. `byAddress` stands before the authentication, `byToken` after it.
 */
export function createRateLimits({ perToken, perAddress, trustedProxies, isVerified }: RateLimits) {
  const counter = (limit: number) => createWindowCounter({ limit, windowMs: WINDOW_S * 1_000 });
  const [addresses, tokens, refused] = [counter(perAddress), counter(perToken), counter(MAX_REFUSED)];
  const byAddress: MiddlewareHandler<EdgeEnv> = async (c, next) => {
    const address = addressOf(originOf(c), trustedProxies);
    if (address === undefined) return next();
    const guesses = refused.look(address);
    if (!guesses.allowed && !isVerified(c.req.header('Authorization')))
      throw new AppError('too_many_requests', { retryAfterMs: guesses.endsInMs });
    take(c, addresses, 'address', address);
    await next();
    if (c.res.status === 401) refused.take(address);
  };
  const byToken: MiddlewareHandler<EdgeEnv> = async (c, next) => {
    take(c, tokens, 'token', keyOf(c.var.who));
    await next();
  };
  /**
   * Takes one request of both, of a person whose token is verified, for an answer that goes past the middleware, and says
   * in headers, names and values in turn, what is left; null where it is to be refused, which is the middleware's to do.
   */
  const takeAtOnce = (origin: Origin, key: string): readonly string[] | null => {
    const address = addressOf(origin, trustedProxies);
    if (address !== undefined && !addresses.take(address).allowed) return null;
    const standing = tokens.take(key);
    return standing.allowed ? said('token', perToken, standing) : null;
  };
  return { byAddress, byToken, takeAtOnce };
}
