import { hkdfSync } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { auth as basicCredentials } from 'hono/utils/basic-auth';
import { timingSafeEqual } from 'hono/utils/buffer';
import { createVerifier, issueToken, secondsLeft } from '../../lib/auth/tokens.ts';
import { may } from '../../lib/domain/roles.ts';
import { AppError } from '../../lib/errors.ts';
import { bearerOf } from './auth.ts';
import type { EdgeDeps } from './deps.ts';
import type { EdgeEnv } from './router.ts';

/** The cookie that carries the token for pages, which cannot set a header. Where it is secure, it is `__Host-` this. */
export const TOKEN_COOKIE = 'bakehouse_token';
export const LOGIN_PATH = '/ops/login';

/** A working day; a token that ends before ends the login. */
const LOGIN_SECONDS = 8 * 3_600;
const AUDIENCE = 'bakehouse-ops-pages';

export interface OpsAuth {
  /** Whether there is a password at all; without one, only a token opens. */
  hasPassword: boolean;
  /** For the ops pages: basic auth, or the token of one who may read them, in a header or in the cookie. */
  authenticate: MiddlewareHandler<EdgeEnv>;
  /** Puts a token into the cookie. Throws `unauthorized`, or `forbidden` for one who may not read the pages. */
  logInWithToken(c: Context, token: string): Promise<void>;
  /** The same for name and password. */
  logInWithPassword(c: Context, given: { username: string; password: string }): Promise<void>;
  logOut(c: Context): void;
}

type Deps = Pick<EdgeDeps, 'config' | 'verify'>;

/**
 * Who may see the ops pages. They are never open: without a token and without a password nobody comes in. Tokens are
 * verified at each request, so that a key that is withdrawn is noticed here at once.
 */
export function createOpsAuth({ config, verify }: Deps): OpsAuth {
  const { OPS_USER: user, OPS_PASSWORD: password } = config;
  const ofPassword = password === undefined ? undefined : tokensOf(password);

  // Both are compared, whatever the first comparison says: the time tells nothing.
  const isRight = async (given: { username: string; password: string }) =>
    password !== undefined &&
    (await Promise.all([timingSafeEqual(given.username, user), timingSafeEqual(given.password, password)])).every(
      Boolean,
    );

  const assertMayRead = async (token: string, verifyToken = verify) => {
    if (!may((await verifyToken(token)).role, 'ops.read')) throw new AppError('forbidden');
  };
  /** What a cookie holds: a token that was shown at the login, or one that the password was exchanged for. */
  const assertCookie = async (token: string) => {
    const isOurs = await ofPassword?.verify(token).then(
      () => true,
      () => false,
    );
    if (!isOurs) await assertMayRead(token);
  };

  const isSecure = (c: Context) =>
    config.NODE_ENV === 'production' ||
    new URL(c.req.url).protocol === 'https:' ||
    (config.TRUSTED_PROXIES > 0 && c.req.header('X-Forwarded-Proto')?.split(',').at(-1)?.trim() === 'https');
  const cookieOf = (c: Context) => (isSecure(c) ? getCookie(c, TOKEN_COOKIE, 'host') : getCookie(c, TOKEN_COOKIE));
  const attributes = (c: Context) => ({
    ...{ path: '/', httpOnly: true, sameSite: 'Strict' as const, secure: isSecure(c) },
    ...(isSecure(c) && { prefix: 'host' as const }),
  });
  const logIn = (c: Context, token: string) =>
    setCookie(c, TOKEN_COOKIE, token, { ...attributes(c), maxAge: Math.min(LOGIN_SECONDS, secondsLeft(token)) });

  /** A person in a browser is shown where to log in; whatever else asks is told what it lacks. */
  const refuse = (c: Context) => {
    const isPerson = c.req.method === 'GET' && c.req.header('Accept')?.includes('text/html');
    if (isPerson && c.req.header('Authorization') === undefined) return c.redirect(LOGIN_PATH, 303);
    if (password !== undefined) c.header('WWW-Authenticate', 'Basic realm="Bakehouse ops", charset="UTF-8"');
    throw new AppError('unauthorized');
  };

  return {
    hasPassword: password !== undefined,
    authenticate: async (c, next) => {
      const basic = basicCredentials(c.req.raw);
      if (basic && (await isRight(basic))) return next();
      const bearer = bearerOf(c.req.header('Authorization'));
      if (bearer !== undefined) {
        await assertMayRead(bearer);
        return next();
      }
      const token = cookieOf(c);
      if (token === undefined || basic) return refuse(c);
      try {
        await assertCookie(token);
      } catch (error) {
        if (error instanceof AppError && error.code === 'unauthorized') return refuse(c);
        throw error;
      }
      return next();
    },
    logInWithToken: async (c, token) => {
      await assertMayRead(token);
      if (secondsLeft(token) <= 0) throw new AppError('unauthorized');
      logIn(c, token);
    },
    logInWithPassword: async (c, given) => {
      if (ofPassword === undefined || !(await isRight(given))) throw new AppError('unauthorized');
      logIn(c, await ofPassword.issue(user));
    },
    logOut: (c) => void deleteCookie(c, TOKEN_COOKIE, attributes(c)),
  };
}

/**
 * Tokens that stand for the password in the cookie, so that the password itself is in none. Signed under a key made of
 * it (RFC 5869): every edge knows them without keeping anything, they end with the password, and are none for the API.
 */
function tokensOf(password: string) {
  const key = hkdfSync('sha256', password, '', 'bakehouse ops pages', 32);
  const secret = Buffer.from(key).toString('base64');
  return {
    verify: createVerifier({ secret, audience: AUDIENCE }),
    issue: (user: string) =>
      issueToken({ secret, sub: user, role: 'ops', ttlSeconds: LOGIN_SECONDS, audience: AUDIENCE }),
  };
}
