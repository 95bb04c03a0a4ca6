import { and, desc, eq, inArray, lt } from 'drizzle-orm';
import { type Readiness, type ReadinessItem, readinessOf } from '../domain/readiness.ts';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { assignments, exerciseRenders, programs, sessionItems, sessions } from './schema/index.ts';
import { type Viewer, visibleTo } from './viewer.ts';

const item = {
  itemId: sessionItems.id,
  renderId: sessionItems.renderId,
  status: exerciseRenders.status,
  errorCode: exerciseRenders.errorCode,
  errorSentence: exerciseRenders.errorMessage,
};

/** Readiness of a programme in one statement; null where there is none that this viewer may know of. */
export async function findReadiness(db: Executor, programId: string, viewer: Viewer): Promise<Readiness | null> {
  const found = await db
    .select(item)
    .from(programs)
    .leftJoin(sessions, eq(sessions.programId, programs.id))
    .leftJoin(sessionItems, eq(sessionItems.sessionId, sessions.id))
    .leftJoin(exerciseRenders, eq(exerciseRenders.id, sessionItems.renderId))
    .where(and(eq(programs.id, programId), visibleTo(db, viewer)))
    .orderBy(sessions.position, sessionItems.position);
  return found.length === 0 ? null : readinessOf(found.filter(isItem));
}

/** The outer joins answer one row without an item where a programme or session is empty. */
const isItem = <T extends { itemId: string | null }>(row: T): row is T & { itemId: string } => row.itemId !== null;

export interface AssignedProgram {
  id: string;
  title: string;
  language: string;
  publishedAt: Date | null;
  assignedAt: Date;
  sessions: { id: string; title: string }[];
  readiness: Readiness;
}

/** A patient's published programmes, newest assignment first, each with its readiness: one statement a page. */
export async function listAssignedPrograms(
  db: Executor,
  { orgId, patientId, limit, after }: PageRequest & { orgId: string; patientId: string },
): Promise<Page<AssignedProgram>> {
  const page = db
    .select({ id: assignments.id })
    .from(assignments)
    .innerJoin(programs, eq(programs.id, assignments.programId))
    .where(
      and(
        eq(assignments.patientId, patientId),
        eq(programs.orgId, orgId),
        eq(programs.status, 'published'),
        after === null ? undefined : lt(assignments.id, after),
      ),
    )
    .orderBy(desc(assignments.id))
    .limit(limit + 1);
  const found = await db
    .select({
      assignmentId: assignments.id,
      program: {
        id: programs.id,
        title: programs.title,
        language: programs.language,
        publishedAt: programs.publishedAt,
        assignedAt: assignments.createdAt,
      },
      session: { id: sessions.id, title: sessions.title },
      item,
    })
    .from(assignments)
    .innerJoin(programs, eq(programs.id, assignments.programId))
    .leftJoin(sessions, eq(sessions.programId, programs.id))
    .leftJoin(sessionItems, eq(sessionItems.sessionId, sessions.id))
    .leftJoin(exerciseRenders, eq(exerciseRenders.id, sessionItems.renderId))
    .where(inArray(assignments.id, page))
    .orderBy(desc(assignments.id), sessions.position, sessionItems.position);

  const byId = new Map<string, AssignedEntry>();
  for (const { assignmentId, program, session, item } of found) {
    const entry: AssignedEntry = byId.get(assignmentId) ?? { program, sessions: new Map(), items: [] };
    byId.set(assignmentId, entry);
    if (session) entry.sessions.set(session.id, session.title);
    if (isItem(item)) entry.items.push(item);
  }
  const { items, next } = toPage([...byId], limit, ([assignmentId]) => assignmentId);
  return {
    items: items.map(([, { program, sessions, items }]) => ({
      ...program,
      sessions: [...sessions].map(([id, title]) => ({ id, title })),
      readiness: readinessOf(items),
    })),
    next,
  };
}

interface AssignedEntry {
  program: Omit<AssignedProgram, 'sessions' | 'readiness'>;
  /** Title by id, in order. */
  sessions: Map<string, string>;
  items: ReadinessItem[];
}
