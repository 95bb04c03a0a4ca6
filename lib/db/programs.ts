import { and, desc, eq, inArray, lt, or } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { Dose } from '../domain/recipe.ts';
import { AppError } from '../errors.ts';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { exercises, programs, sessionItems, sessions } from './schema/index.ts';

export type Program = typeof programs.$inferSelect;

export interface SessionInput {
  title: string;
  items: { exerciseId: string; dose: Dose }[];
}

export interface ProgramItem {
  id: string;
  position: number;
  exerciseId: string;
  exerciseNames: Record<string, string>;
  dose: Dose;
  renderId: string | null;
}

export interface ProgramSession {
  id: string;
  position: number;
  title: string;
  status: Program['status'];
  items: ProgramItem[];
}

/** `orgId` null: a superadmin, who reaches every organisation's. */
const inOrg = (orgId: string | null) => (orgId === null ? undefined : eq(programs.orgId, orgId));

/** Stores a draft and answers its id; run it in a transaction. Throws `invalid_request` naming each item whose exercise is not there for this organisation. */
export async function createProgram(
  tx: Executor,
  input: { orgId: string; title: string; language: string; createdBy: string; sessions: readonly SessionInput[] },
): Promise<string> {
  const { sessions: given, ...program } = input;
  const id = uuidv7();
  await tx.insert(programs).values({ id, ...program });
  await insertSessions(tx, { id, orgId: input.orgId }, given);
  return id;
}

/**
 * Changes a draft; given sessions replace all that were there. Run it in a transaction: the programme is locked, so
 * that no publish resolves half of the change. Throws `not_found`, `already_published` and what `createProgram` throws.
 */
export async function updateProgram(
  tx: Executor,
  { id, orgId }: { id: string; orgId: string | null },
  changes: { title?: string | undefined; language?: string | undefined; sessions?: SessionInput[] | undefined },
): Promise<void> {
  const [program] = await tx
    .select({ id: programs.id, orgId: programs.orgId, status: programs.status })
    .from(programs)
    .where(and(eq(programs.id, id), inOrg(orgId)))
    .for('update');
  if (!program) throw new AppError('not_found');
  if (program.status !== 'draft') throw new AppError('already_published');
  const { sessions: given, ...fields } = changes;
  await tx
    .update(programs)
    .set({ ...fields, updatedAt: new Date() })
    .where(eq(programs.id, id));
  if (given === undefined) return;
  await tx.delete(sessions).where(eq(sessions.programId, id));
  await insertSessions(tx, program, given);
}

async function insertSessions(
  tx: Executor,
  program: { id: string; orgId: string },
  given: readonly SessionInput[],
): Promise<void> {
  const rows = given.map((session, position) => ({ ...session, id: uuidv7(), position }));
  if (rows.length === 0) return;
  await tx
    .insert(sessions)
    .values(
      rows.map(({ id, position, title }) => ({ id, orgId: program.orgId, programId: program.id, position, title })),
    );
  const withPaths = rows.map(({ id, items }, nth) => ({ id, items, path: `sessions.${nth}.items` }));
  await insertItems(tx, program.orgId, withPaths);
}

interface ItemsOfSession {
  /** The session's. */
  id: string;
  items: SessionInput['items'];
  /** Where in the request they stood. */
  path: string;
}

/** Stores the items of sessions that hold none. Throws `invalid_request` naming each whose exercise is not there for this organisation. */
export async function insertItems(tx: Executor, orgId: string, given: readonly ItemsOfSession[]): Promise<void> {
  await assertExercisesUsable(tx, orgId, given);
  const items = given.flatMap(({ id, items }) => items.map((item, position) => ({ ...item, sessionId: id, position })));
  if (items.length > 0) await tx.insert(sessionItems).values(items);
}

async function assertExercisesUsable(tx: Executor, orgId: string, given: readonly ItemsOfSession[]): Promise<void> {
  const wanted = [...new Set(given.flatMap((session) => session.items.map((item) => item.exerciseId)))];
  if (wanted.length === 0) return;
  const usable = await tx
    .select({ id: exercises.id })
    .from(exercises)
    .where(and(inArray(exercises.id, wanted), or(eq(exercises.tier, 'platform'), eq(exercises.orgId, orgId))));
  const known = new Set(usable.map((row) => row.id));
  const issues = given.flatMap(({ items, path }) =>
    items.flatMap((item, nth) =>
      known.has(item.exerciseId) ? [] : [{ path: `${path}.${nth}.exerciseId`, message: 'There is no such exercise.' }],
    ),
  );
  if (issues.length > 0) throw new AppError('invalid_request', { issues });
}

export async function listPrograms(
  db: Executor,
  { orgId, limit, after }: PageRequest & { orgId: string | null },
): Promise<Page<Program>> {
  const found = await db
    .select()
    .from(programs)
    .where(and(inOrg(orgId), after === null ? undefined : lt(programs.id, after)))
    .orderBy(desc(programs.id))
    .limit(limit + 1);
  return toPage(found, limit, (program) => program.id);
}

/** The programme with its sessions and items in order; null where there is none or it belongs to another organisation. */
export async function findProgram(
  db: Executor,
  { id, orgId }: { id: string; orgId: string | null },
): Promise<{ program: Program; sessions: ProgramSession[] } | null> {
  const found = await db
    .select({ program: programs, session: sessions, item: sessionItems, exerciseNames: exercises.names })
    .from(programs)
    .leftJoin(sessions, eq(sessions.programId, programs.id))
    .leftJoin(sessionItems, eq(sessionItems.sessionId, sessions.id))
    .leftJoin(exercises, eq(exercises.id, sessionItems.exerciseId))
    .where(and(eq(programs.id, id), inOrg(orgId)))
    .orderBy(sessions.position, sessionItems.position);
  const program = found[0]?.program;
  if (!program) return null;
  const byId = new Map<string, ProgramSession>();
  for (const { session, item, exerciseNames } of found) {
    if (!session) continue;
    const { title, position, status } = session;
    const entry = byId.get(session.id) ?? { id: session.id, position, title, status, items: [] };
    byId.set(session.id, entry);
    if (!item) continue;
    const { sessionId: _, ...rest } = item;
    entry.items.push({ ...rest, exerciseNames: exerciseNames ?? {} });
  }
  return { program, sessions: [...byId.values()] };
}
