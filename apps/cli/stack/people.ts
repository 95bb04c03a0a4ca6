import { issueToken } from '../../../lib/auth/tokens.ts';
import type { CliConfig } from '../../../lib/config/cli.ts';
import { openDatabase } from '../../../lib/db/client.ts';
import { rememberMember } from '../../../lib/db/members.ts';
import type { Role } from '../../../lib/domain/roles.ts';

const TOKEN_TTL_SECONDS = 30 * 24 * 3600;
const ROLES: readonly Role[] = ['superadmin', 'manager', 'specialist', 'patient', 'ops'];

/** The people that the development tokens speak for, so that they are told of what fails. */
export async function rememberPeople(databaseUrl: string, orgId: string): Promise<void> {
  const database = openDatabase(databaseUrl, { max: 1 });
  try {
    await rememberMember(database.db, { orgId: null, subject: 'dev-superadmin', role: 'superadmin' });
    await rememberMember(database.db, { orgId, subject: 'dev-manager', role: 'manager' });
    await rememberMember(database.db, { orgId, subject: 'dev-specialist', role: 'specialist' });
  } finally {
    await database.close();
  }
}

/** A token for each role, good for a month. */
export async function issueTokens(config: CliConfig, secret: string, orgId: string): Promise<Record<Role, string>> {
  const about = { issuer: config.JWT_ISSUER, audience: config.JWT_AUDIENCE };
  const tokens = await Promise.all(
    ROLES.map(async (role) => {
      const org = role === 'superadmin' || role === 'ops' ? {} : { org: orgId };
      return [
        role,
        await issueToken({ ...about, secret, sub: `dev-${role}`, role, ...org, ttlSeconds: TOKEN_TTL_SECONDS }),
      ] as const;
    }),
  );
  return Object.fromEntries(tokens) as Record<Role, string>;
}
