import { and, desc, eq, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { cueClips, exerciseSources, exercises, type RepMarks } from './schema/index.ts';

export type Exercise = typeof exercises.$inferSelect;
type ExerciseSource = Pick<
  typeof exerciseSources.$inferSelect,
  'sha256' | 'bytes' | 'durationMs' | 'report' | 'createdAt'
>;
export type CueClip = typeof cueClips.$inferSelect;

/** An exercise with its current source, which is the one uploaded last. */
export interface SourcedExercise {
  exercise: Exercise;
  source: ExerciseSource | null;
}

/** `orgId` null: a superadmin, who sees every organisation's; others see the platform's and their own. */
const visibleTo = (orgId: string | null) =>
  orgId === null ? undefined : or(eq(exercises.tier, 'platform'), eq(exercises.orgId, orgId));

function selectSourced(db: Executor) {
  const source = db
    .select({
      sha256: exerciseSources.sha256,
      bytes: exerciseSources.bytes,
      durationMs: exerciseSources.durationMs,
      report: exerciseSources.report,
      createdAt: exerciseSources.createdAt,
    })
    .from(exerciseSources)
    .where(eq(exerciseSources.exerciseId, exercises.id))
    .orderBy(desc(exerciseSources.createdAt))
    .limit(1)
    .as('source');
  return db
    .select({
      exercise: exercises,
      source: {
        sha256: source.sha256,
        bytes: source.bytes,
        durationMs: source.durationMs,
        report: source.report,
        createdAt: source.createdAt,
      },
    })
    .from(exercises)
    .leftJoinLateral(source, sql`true`);
}

/** Platform tier where `orgId` is null. */
export async function createExercise(
  db: Executor,
  input: { orgId: string | null; names: Record<string, string>; repMarks: RepMarks; createdBy: string },
): Promise<Exercise> {
  const [exercise] = await db
    .insert(exercises)
    .values({ ...input, tier: input.orgId === null ? 'platform' : 'org' })
    .returning();
  if (!exercise) throw new Error('the exercise was not stored');
  return exercise;
}

export async function listExercises(
  db: Executor,
  { orgId, limit, after }: PageRequest & { orgId: string | null },
): Promise<Page<SourcedExercise>> {
  const further = after === null ? undefined : lt(exercises.id, after);
  const newest = (whose: SQL) =>
    db
      .select({ id: exercises.id })
      .from(exercises)
      .where(and(whose, further))
      .orderBy(desc(exercises.id))
      .limit(limit + 1);
  // An index can be read in its order for one owner, and not for either of two.
  const ofBoth =
    orgId === null
      ? further
      : sql`${exercises.id} in (${newest(isNull(exercises.orgId))} union all ${newest(eq(exercises.orgId, orgId))})`;
  const found = await selectSourced(db)
    .where(ofBoth)
    .orderBy(desc(exercises.id))
    .limit(limit + 1);
  return toPage(found, limit, ({ exercise }) => exercise.id);
}

/** Null where there is none or it belongs to another organisation. */
export async function findExercise(
  db: Executor,
  { id, orgId }: { id: string; orgId: string | null },
): Promise<SourcedExercise | null> {
  const [found] = await selectSourced(db).where(and(eq(exercises.id, id), visibleTo(orgId)));
  return found ?? null;
}

export function listCueClips(db: Executor, exerciseId: string): Promise<CueClip[]> {
  return db
    .select()
    .from(cueClips)
    .where(eq(cueClips.exerciseId, exerciseId))
    .orderBy(cueClips.language, cueClips.name);
}

/** Replaces what is given. Renders that exist keep what they were baked from. */
export async function updateExercise(
  db: Executor,
  id: string,
  changes: { names?: Record<string, string> | undefined; repMarks?: RepMarks | undefined },
): Promise<void> {
  // `updatedAt` keeps the statement valid where nothing else is given.
  await db
    .update(exercises)
    .set({ ...changes, updatedAt: new Date() })
    .where(eq(exercises.id, id));
}

/** Makes this the current source; earlier ones stay, because renders were made of them. */
export async function addSource(db: Executor, source: typeof exerciseSources.$inferInsert): Promise<void> {
  await db.insert(exerciseSources).values(source);
}

/** One clip per exercise, language and name: a new one takes the place of the old. */
export async function putCueClip(db: Executor, clip: typeof cueClips.$inferInsert): Promise<void> {
  const { sha256, bytes, durationMs, uploadedBy } = clip;
  await db
    .insert(cueClips)
    .values(clip)
    .onConflictDoUpdate({
      target: [cueClips.exerciseId, cueClips.language, cueClips.name],
      set: { sha256, bytes, durationMs, uploadedBy, updatedAt: new Date() },
    });
}
