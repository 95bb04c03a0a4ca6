import type { MiddlewareHandler } from 'hono';
import type { Verifier, Who } from '../../lib/auth/tokens.ts';
import type { Viewer } from '../../lib/db/viewer.ts';
import { may, type Permission } from '../../lib/domain/roles.ts';
import { AppError } from '../../lib/errors.ts';
import type { EdgeEnv } from './router.ts';

/** The token of an `Authorization` header. */
export const bearerOf = (authorization: string | undefined) => /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];

/** Lets nobody past without a valid token, and says who they are. */
export const authenticate =
  (verify: Verifier): MiddlewareHandler<EdgeEnv> =>
  async (c, next) => {
    const token = bearerOf(c.req.header('Authorization'));
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
