import { and, desc, eq, isNull, lt, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import { AppError } from '../errors.ts';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { insertItems, type ProgramItem, type SessionInput } from './programs.ts';
import { exercises, programs, sessionItems, sessions } from './schema/index.ts';

/** Sessions that stand alone: a clinic's own library, from which programmes take copies. */

export type Session = typeof sessions.$inferSelect;

interface Reach {
  id: string;
  /** Null: a superadmin, who reaches every organisation's. */
  orgId: string | null;
}

const inOrg = (orgId: string | null) => (orgId === null ? undefined : eq(sessions.orgId, orgId));
const alone = ({ id, orgId }: Reach) => and(eq(sessions.id, id), isNull(sessions.programId), inOrg(orgId));

/** Stores a draft and answers its id; run it in a transaction. Throws `invalid_request` naming each item whose exercise is not there. */
export async function createSession(
  tx: Executor,
  input: SessionInput & { orgId: string; language: string; createdBy: string },
): Promise<string> {
  const { items, ...session } = input;
  const id = uuidv7();
  await tx.insert(sessions).values({ id, ...session });
  await insertItems(tx, input.orgId, [{ id, items, path: 'items' }]);
  return id;
}

/** Changes a draft; given items replace all that were there. Run it in a transaction. Throws `not_found`, `already_published`. */
export async function updateSession(
  tx: Executor,
  reach: Reach,
  changes: { [Field in keyof SessionInput]?: SessionInput[Field] | undefined } & { language?: string | undefined },
): Promise<void> {
  const session = await lockSession(tx, reach);
  if (session.status !== 'draft') throw new AppError('already_published');
  const { items, ...fields } = changes;
  await tx
    .update(sessions)
    .set({ ...fields, updatedAt: new Date() })
    .where(eq(sessions.id, session.id));
  if (items === undefined) return;
  await tx.delete(sessionItems).where(eq(sessionItems.sessionId, session.id));
  await insertItems(tx, session.orgId, [{ id: session.id, items, path: 'items' }]);
}

async function lockSession(tx: Executor, reach: Reach): Promise<Session> {
  const [session] = await tx.select().from(sessions).where(alone(reach)).for('update');
  if (!session) throw new AppError('not_found');
  return session;
}

/** Takes a session out of use; what has been made of it stays. One that is archived stays so. Throws `not_found`. */
export async function archiveSession(db: Executor, reach: Reach): Promise<void> {
  const archived = await db
    .update(sessions)
    .set({ status: 'archived' })
    .where(alone(reach))
    .returning({ id: sessions.id });
  if (archived.length === 0) throw new AppError('not_found');
}

export async function listSessions(
  db: Executor,
  { orgId, limit, after }: PageRequest & { orgId: string | null },
): Promise<Page<Session>> {
  const found = await db
    .select()
    .from(sessions)
    .where(and(isNull(sessions.programId), inOrg(orgId), after === null ? undefined : lt(sessions.id, after)))
    .orderBy(desc(sessions.id))
    .limit(limit + 1);
  return toPage(found, limit, ({ id }) => id);
}

/** With its items in order; null where there is none that stands alone, or it belongs to another organisation. */
export async function findSession(
  db: Executor,
  reach: Reach,
): Promise<{ session: Session; items: ProgramItem[] } | null> {
  const found = await db
    .select({ session: sessions, item: sessionItems, exerciseNames: exercises.names })
    .from(sessions)
    .leftJoin(sessionItems, eq(sessionItems.sessionId, sessions.id))
    .leftJoin(exercises, eq(exercises.id, sessionItems.exerciseId))
    .where(alone(reach))
    .orderBy(sessionItems.position);
  const [first] = found;
  if (!first) return null;
  const items = found.flatMap(({ item, exerciseNames }) => {
    if (!item) return [];
    const { sessionId: _, ...rest } = item;
    return [{ ...rest, exerciseNames: exerciseNames ?? {} }];
  });
  return { session: first.session, items };
}

/**
 * Puts a copy of a published session at the end of a draft programme and answers the id of the copy: what is changed in
 * either later leaves the other as it is. Run it in a transaction. Throws `not_found` for either, `already_published` for
 * the programme, `not_published` for the session, `invalid_request` for a session of another organisation.
 */
export async function attachSession(
  tx: Executor,
  { programId, sessionId, orgId }: { programId: string; sessionId: string; orgId: string | null },
): Promise<string> {
  const [program] = await tx
    .select({ orgId: programs.orgId, status: programs.status })
    .from(programs)
    .where(and(eq(programs.id, programId), orgId === null ? undefined : eq(programs.orgId, orgId)))
    .for('update');
  if (!program) throw new AppError('not_found');
  if (program.status !== 'draft') throw new AppError('already_published');
  const [source] = await tx
    .select({ title: sessions.title, status: sessions.status })
    .from(sessions)
    .where(alone({ id: sessionId, orgId: program.orgId }))
    .for('share');
  if (!source) {
    throw new AppError('invalid_request', { issues: [{ path: 'sessionId', message: 'There is no such session.' }] });
  }
  if (source.status !== 'published') {
    throw new AppError('not_published', { sentence: 'Only a published session can be attached.' });
  }
  const id = uuidv7();
  const next = sql<number>`(select coalesce(max(position) + 1, 0) from sessions where program_id = ${programId})`;
  await tx.insert(sessions).values({ id, orgId: program.orgId, programId, position: next, title: source.title });
  await copyItems(tx, sql`(values (${sessionId}::uuid, ${id}::uuid))`);
  return id;
}

/** Copies all items of the first of each pair of session ids to the second, without what they resolved to. */
export const copyItems = (tx: Executor, pairs: ReturnType<typeof sql>) =>
  tx.execute(sql`
    insert into session_items (id, session_id, position, exercise_id, dose)
    select gen_random_uuid(), pair.to_id, i.position, i.exercise_id, i.dose
      from ${pairs} as pair(from_id, to_id) join session_items i on i.session_id = pair.from_id`);
