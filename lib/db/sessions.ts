import { and, eq, isNull, or, sql } from 'drizzle-orm';
import type { Dose } from '../domain/recipe.ts';
import type { Executor } from './client.ts';
import { exerciseRenders, exercises, programs, runs, sessionItems, sessions } from './schema/index.ts';
import { type Viewer, visibleTo } from './viewer.ts';

export interface PlayableItem {
  id: string;
  position: number;
  dose: Dose;
  exerciseId: string;
  exerciseNames: Record<string, string>;
  /** Null before publish. */
  render: Pick<
    typeof exerciseRenders.$inferSelect,
    | 'id'
    | 'status'
    | 'errorCode'
    | 'errorMessage'
    | 'videoGuid'
    | 'manifestUrl'
    | 'captionsUrl'
    | 'posterUrl'
    | 'baselines'
    | 'durationMs'
  > | null;
}

export interface PlayableSession {
  id: string;
  title: string;
  programId: string | null;
  /** Its programme's, or its own where it stands alone. */
  language: string | null;
  items: PlayableItem[];
}

/** A session with its items in order and what each one plays, in one statement; null where this viewer has none such. */
export async function findPlayableSession(
  db: Executor,
  sessionId: string,
  viewer: Viewer,
): Promise<PlayableSession | null> {
  // A session that stands alone belongs to its clinic; a patient reaches sessions through a programme only.
  const ownSession =
    viewer.patientId !== null
      ? undefined
      : and(isNull(sessions.programId), viewer.orgId === null ? undefined : eq(sessions.orgId, viewer.orgId));
  const found = await db
    .select({
      session: { id: sessions.id, title: sessions.title, programId: sessions.programId },
      language: sql<string | null>`coalesce(${programs.language}, ${sessions.language})`,
      item: {
        id: sessionItems.id,
        position: sessionItems.position,
        dose: sessionItems.dose,
        exerciseId: sessionItems.exerciseId,
      },
      exerciseNames: exercises.names,
      render: {
        id: exerciseRenders.id,
        status: exerciseRenders.status,
        errorCode: exerciseRenders.errorCode,
        errorMessage: exerciseRenders.errorMessage,
        videoGuid: exerciseRenders.videoGuid,
        manifestUrl: exerciseRenders.manifestUrl,
        captionsUrl: exerciseRenders.captionsUrl,
        posterUrl: exerciseRenders.posterUrl,
        baselines: exerciseRenders.baselines,
        durationMs: exerciseRenders.durationMs,
      },
    })
    .from(sessions)
    .leftJoin(programs, eq(programs.id, sessions.programId))
    .leftJoin(sessionItems, eq(sessionItems.sessionId, sessions.id))
    .leftJoin(exercises, eq(exercises.id, sessionItems.exerciseId))
    .leftJoin(exerciseRenders, eq(exerciseRenders.id, sessionItems.renderId))
    .where(
      and(eq(sessions.id, sessionId), or(ownSession, and(eq(programs.id, sessions.programId), visibleTo(db, viewer)))),
    )
    .orderBy(sessionItems.position);
  const [first] = found;
  if (!first) return null;
  return {
    ...first.session,
    language: first.language,
    items: found.flatMap(({ item, exerciseNames, render }) =>
      item ? [{ ...item, exerciseNames: exerciseNames ?? {}, render }] : [],
    ),
  };
}

/** Writes down that a patient has begun a session; whether it may begin is the caller's to know. */
export async function startRun(
  db: Executor,
  run: { sessionId: string; patientId: string },
): Promise<{ id: string; startedAt: Date }> {
  const [started] = await db.insert(runs).values(run).returning({ id: runs.id, startedAt: runs.startedAt });
  if (!started) throw new Error('the run was not stored');
  return started;
}
