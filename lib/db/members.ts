import { sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { Role } from '../domain/roles.ts';
import type { Executor } from './client.ts';
import type { members } from './schema/index.ts';

/**
 * Makes sure that an author and their organisation are known before they own something. Who exists is the identity
 * provider's business: its signed token is the proof, and the first thing that a person makes brings them in here.
 * From then on they are told of what fails. `orgId` is null for a superadmin.
 */
export async function rememberMember(
  db: Executor,
  member: { orgId: string | null; subject: string; role: (typeof members.$inferInsert)['role'] },
): Promise<void> {
  await db.execute(sql`
    with known as (
      insert into organisations (id, name)
      select org.id, org.id::text from (select ${member.orgId}::uuid as id) as org where org.id is not null
      on conflict (id) do nothing
    )
    insert into members (id, org_id, subject, role)
    values (${uuidv7()}, ${member.orgId}, ${member.subject}, ${member.role})
    on conflict on constraint members_org_subject_key do update set role = excluded.role
      where members.role <> excluded.role`);
}

/** Before something of an organisation is made: by one of its own people, or by a superadmin for it. */
export async function rememberAuthor(db: Executor, orgId: string, author: { sub: string; role: Role }): Promise<void> {
  const { sub: subject, role } = author;
  if (role === 'manager' || role === 'specialist') await rememberMember(db, { orgId, subject, role });
  else await rememberOrganisation(db, orgId);
}

/** Makes sure that an organisation is known that somebody else, a superadmin, makes something for. */
async function rememberOrganisation(db: Executor, orgId: string): Promise<void> {
  await db.execute(sql`insert into organisations (id, name) values (${orgId}, ${orgId}) on conflict (id) do nothing`);
}
