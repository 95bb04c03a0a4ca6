import { and, desc, eq, inArray, lt, sql } from 'drizzle-orm';
import type { Unfinished } from '../domain/eta.ts';
import { type Readiness, type ReadinessItem, readinessOf } from '../domain/readiness.ts';
import type { RenderStatus } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { rows } from './rows.ts';
import { assignments, exerciseRenders, programs, sessionItems, sessions } from './schema/index.ts';
import type { Viewer } from './viewer.ts';

const item = {
  itemId: sessionItems.id,
  renderId: sessionItems.renderId,
  status: exerciseRenders.status,
  errorCode: exerciseRenders.errorCode,
  errorSentence: exerciseRenders.errorMessage,
};

/** What a programme looks like to whoever may see it. */
export interface ProgramStatus {
  readiness: Readiness;
  /** Its renders that have not ended, each once. */
  unfinished: Unfinished[];
}

/** How a programme stands, in one statement; null where there is none. Who may know of it is not asked: `maySee`. */
export async function readStatus(db: Executor, programId: string): Promise<ProgramStatus | null> {
  const found = await rows<StatusRow>(
    db,
    sql`with items as materialized (
      select s.position as session_position, i.position, i.id as item_id, i.render_id
        from sessions s join session_items i on i.session_id = s.id where s.program_id = ${programId}
    ), last_waiting as (
      select r.fair_tag, r.urgent, r.updated_at, r.id from exercise_renders r
       where r.status = 'pending' and r.id in (select render_id from items)
       order by r.fair_tag desc, r.urgent, r.updated_at desc, r.id desc limit 1
    )
    select i.item_id, i.render_id, r.status, r.error_code, r.error_message,
           extract(epoch from now() - case r.status when 'rendering' then r.claimed_at when 'transcoding' then r.transcode_started_at else r.updated_at end)::float8 * 1000 as since_ms,
           greatest(0, extract(epoch from r.not_before - now())::float8 * 1000) as wait_ms,
           case when r.status = 'pending' then
             (select count(*) from exercise_renders o cross join last_waiting l
               where o.status = 'pending'
                 and (o.fair_tag, not o.urgent, o.updated_at, o.id) < (l.fair_tag, not l.urgent, l.updated_at, l.id))
           end::int as ahead
      from programs p left join items i on true left join exercise_renders r on r.id = i.render_id
     where p.id = ${programId}
     order by i.session_position, i.position`,
  );
  if (found.length === 0) return null;
  const items = found.filter((row) => row.item_id !== null);
  const renders = new Map(items.map((row) => [row.render_id, row]));
  return {
    readiness: readinessOf(
      items.map((row) => ({
        itemId: row.item_id ?? '',
        renderId: row.render_id,
        status: row.status,
        errorCode: row.error_code,
        errorSentence: row.error_message,
      })),
    ),
    unfinished: [...renders.values()].flatMap(({ status, since_ms: sinceMs, wait_ms: waitMs, ahead }) =>
      status === null || status === 'ready' || status === 'failed'
        ? []
        : [{ status, sinceMs: sinceMs ?? 0, waitMs: waitMs ?? 0, ahead: ahead ?? 0 }],
    ),
  };
}

interface StatusRow extends Record<string, unknown> {
  item_id: string | null;
  render_id: string | null;
  status: RenderStatus | null;
  error_code: string | null;
  error_message: string | null;
  since_ms: number | null;
  wait_ms: number | null;
  ahead: number | null;
}

/**
 * Of each programme whether this viewer may know of it, in the order given and in one statement of one text: as `visibleTo`
 * has it.
 */
export async function maySee(db: Executor, asked: readonly Sight[]): Promise<boolean[]> {
  const column = (of: (sight: Sight) => string | null) => sql.param(asked.map(of));
  const seen = await rows<{ nth: string }>(
    db,
    sql`select g.nth
          from unnest(${column(({ programId }) => programId)}::uuid[], ${column(({ viewer }) => viewer.orgId)}::uuid[],
                      ${column(({ viewer }) => viewer.patientId)}::text[]) with ordinality as g(program_id, org_id, patient_id, nth)
          join programs p on p.id = g.program_id
         where (g.org_id is null or p.org_id = g.org_id)
           and (g.patient_id is null or p.status = 'published' and exists (
             select from assignments a where a.program_id = p.id and a.patient_id = g.patient_id))`,
  );
  const places = new Set(seen.map(({ nth }) => Number(nth)));
  return asked.map((_, at) => places.has(at + 1));
}

/** Who looks at which programme. */
export interface Sight {
  programId: string;
  viewer: Viewer;
}

/** The programmes that a change of these renders changes. */
export async function programsPlaying(db: Executor, renderIds: readonly string[]): Promise<string[]> {
  if (renderIds.length === 0) return [];
  const found = await rows<{ program_id: string }>(
    db,
    sql`select distinct s.program_id from session_items i join sessions s on s.id = i.session_id
         where i.render_id = any(${sql.param([...renderIds])}::uuid[]) and s.program_id is not null`,
  );
  return found.map(({ program_id: id }) => id);
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
