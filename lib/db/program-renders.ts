import { and, eq } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { exerciseRenders, exercises, programs, sessionItems, sessions } from './schema/index.ts';
import { type Viewer, visibleTo } from './viewer.ts';

/** A render as the clinic that needs it sees it, with the items of the programme that play it. */
export interface ProgramRender {
  render: Pick<
    typeof exerciseRenders.$inferSelect,
    | 'id'
    | 'exerciseId'
    | 'recipeHash'
    | 'language'
    | 'status'
    | 'generation'
    | 'attempts'
    | 'maxAttempts'
    | 'progressStage'
    | 'progressPercent'
    | 'errorCode'
    | 'errorMessage'
    | 'warnings'
    | 'durationMs'
    | 'masterSha256'
    | 'videoGuid'
    | 'manifestUrl'
    | 'updatedAt'
    | 'readyAt'
  >;
  exerciseNames: Record<string, string>;
  itemIds: string[];
}

/** The programme's renders in playing order; empty before publish, null where there is no such programme for this viewer. */
export async function listProgramRenders(
  db: Executor,
  programId: string,
  viewer: Viewer,
): Promise<ProgramRender[] | null> {
  const found = await db
    .select({
      itemId: sessionItems.id,
      exerciseNames: exercises.names,
      render: {
        id: exerciseRenders.id,
        exerciseId: exerciseRenders.exerciseId,
        recipeHash: exerciseRenders.recipeHash,
        language: exerciseRenders.language,
        status: exerciseRenders.status,
        generation: exerciseRenders.generation,
        attempts: exerciseRenders.attempts,
        maxAttempts: exerciseRenders.maxAttempts,
        progressStage: exerciseRenders.progressStage,
        progressPercent: exerciseRenders.progressPercent,
        errorCode: exerciseRenders.errorCode,
        errorMessage: exerciseRenders.errorMessage,
        warnings: exerciseRenders.warnings,
        durationMs: exerciseRenders.durationMs,
        masterSha256: exerciseRenders.masterSha256,
        videoGuid: exerciseRenders.videoGuid,
        manifestUrl: exerciseRenders.manifestUrl,
        updatedAt: exerciseRenders.updatedAt,
        readyAt: exerciseRenders.readyAt,
      },
    })
    .from(programs)
    .leftJoin(sessions, eq(sessions.programId, programs.id))
    .leftJoin(sessionItems, eq(sessionItems.sessionId, sessions.id))
    .leftJoin(exerciseRenders, eq(exerciseRenders.id, sessionItems.renderId))
    .leftJoin(exercises, eq(exercises.id, exerciseRenders.exerciseId))
    .where(and(eq(programs.id, programId), visibleTo(db, viewer)))
    .orderBy(sessions.position, sessionItems.position);
  if (found.length === 0) return null;
  const byId = new Map<string, ProgramRender>();
  for (const { itemId, exerciseNames, render } of found) {
    if (!render || itemId === null) continue;
    const entry = byId.get(render.id) ?? { render, exerciseNames: exerciseNames ?? {}, itemIds: [] };
    byId.set(render.id, entry);
    entry.itemIds.push(itemId);
  }
  return [...byId.values()];
}
