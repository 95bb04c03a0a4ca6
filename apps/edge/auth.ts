import type { Context, MiddlewareHandler } from 'hono';
import { getCookie } from 'hono/cookie';
import { auth as basicCredentials } from 'hono/utils/basic-auth';
import { timingSafeEqual } from 'hono/utils/buffer';
import type { Verifier, Who } from '../../lib/auth/tokens.ts';
import type { Viewer } from '../../lib/db/viewer.ts';
import { may, type Permission } from '../../lib/domain/roles.ts';
import { AppError } from '../../lib/errors.ts';
import type { EdgeEnv } from './router.ts';

/** The cookie that carries the token for pages, which cannot set a header. */
export const TOKEN_COOKIE = 'bakehouse_token';

/** The token of an `Authorization` header. */
export const bearerOf = (authorization: string | undefined) => /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];

const bearerToken = (c: Context) => bearerOf(c.req.header('Authorization'));

/** Lets nobody past without a valid token, and says who they are. */
export const authenticate =
  (verify: Verifier): MiddlewareHandler<EdgeEnv> =>
  async (c, next) => {
    const token = bearerToken(c);
    if (token === undefined) throw new AppError('unauthorized');
    c.set('who', await verify(token));
    await next();
  };

export const allow =
  (permission: Permission): MiddlewareHandler<EdgeEnv> =>
  async (c, next) => {
    if (!may(c.var.who.role, permission)) throw new AppError('forbidden');
    await next();
  };

export const allowPatients: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  if (c.var.who.role !== 'patient') throw new AppError('forbidden');
  await next();
};

/** Patients see what is assigned to them, the clinic what is its own; null: anybody else sees no programme. */
export function viewerFor(who: Who): Viewer | null {
  if (who.role === 'patient') return { orgId: who.org, patientId: who.sub };
  return may(who.role, 'clinic.read') ? { orgId: who.org, patientId: null } : null;
}

/** The same; throws `forbidden` where they see none. */
export function viewerOf(who: Who): Viewer {
  const viewer = viewerFor(who);
  if (viewer === null) throw new AppError('forbidden');
  return viewer;
}

export interface OpsCredentials {
  user: string;
  /** Without one, only a token opens. */
  password: string | undefined;
}

/** For the ops pages: basic auth, or the token of one who may read them, in a header or in the cookie. */
export const authenticateOps =
  (verify: Verifier, { user, password }: OpsCredentials): MiddlewareHandler<EdgeEnv> =>
  async (c, next) => {
    const basic = basicCredentials(c.req.raw);
    if (basic && password !== undefined) {
      // Both are compared, whatever the first comparison says: the time tells nothing.
      const matches = await Promise.all([
        timingSafeEqual(basic.username, user),
        timingSafeEqual(basic.password, password),
      ]);
      if (matches.every(Boolean)) return next();
    }
    const token = bearerToken(c) ?? getCookie(c, TOKEN_COOKIE);
    if (token === undefined || basic) {
      if (password !== undefined) c.header('WWW-Authenticate', 'Basic realm="Bakehouse ops", charset="UTF-8"');
      throw new AppError('unauthorized');
    }
    if (!may((await verify(token)).role, 'ops.read')) throw new AppError('forbidden');
    return next();
  };
