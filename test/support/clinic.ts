import { createHash, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Db } from '../../lib/db/client.ts';
import {
  cueClips,
  exerciseSources,
  exercises,
  organisations,
  programs,
  sessionItems,
  sessions,
} from '../../lib/db/schema/index.ts';
import { doseSchema } from '../../lib/domain/recipe.ts';

type DoseInput = z.input<typeof doseSchema>;

const one = <T>(rows: T[]): T => {
  if (rows.length !== 1 || rows[0] === undefined) throw new Error(`expected one row, got ${rows.length}`);
  return rows[0];
};

export const shaOf = (text: string) => createHash('sha256').update(text).digest('hex');

export async function anOrganisation(db: Db): Promise<string> {
  return one(await db.insert(organisations).values({ name: 'Physio Nord' }).returning()).id;
}

/** An exercise with a source of `durationMs`; null leaves the source out. */
export async function anExercise(
  db: Db,
  options: { orgId?: string | null; name?: string; durationMs?: number | null } = {},
): Promise<{ id: string; sourceSha256: string }> {
  const { orgId = null, name = 'Squat', durationMs = 3_000 } = options;
  const exercise = one(
    await db
      .insert(exercises)
      .values({ tier: orgId === null ? 'platform' : 'org', orgId, names: { en: name }, createdBy: 'manager-1' })
      .returning(),
  );
  const sourceSha256 = shaOf(exercise.id);
  if (durationMs !== null) {
    await db.insert(exerciseSources).values({
      exerciseId: exercise.id,
      sha256: sourceSha256,
      bytes: 1000,
      durationMs,
      report: {},
      uploadedBy: 'manager-1',
    });
  }
  return { id: exercise.id, sourceSha256 };
}

export async function aClip(db: Db, exerciseId: string, language: string, name: string): Promise<string> {
  const sha256 = shaOf(`${exerciseId} ${language} ${name}`);
  await db.insert(cueClips).values({
    exerciseId,
    language,
    name,
    sha256,
    bytes: 10,
    durationMs: 400,
    uploadedBy: 'manager-1',
  });
  return sha256;
}

/** A draft programme of one session per inner list. */
export async function aProgram(
  db: Db,
  orgId: string,
  plan: { exerciseId: string; dose?: DoseInput }[][],
  options: { language?: string; by?: string } = {},
): Promise<string> {
  const program = one(
    await db
      .insert(programs)
      .values({
        orgId,
        title: `Programme ${randomUUID()}`,
        language: options.language ?? 'en',
        createdBy: options.by ?? 'specialist-1',
      })
      .returning(),
  );
  for (const [position, items] of plan.entries()) {
    const session = one(
      await db
        .insert(sessions)
        .values({ orgId, programId: program.id, position, title: `Session ${position + 1}` })
        .returning(),
    );
    await db.insert(sessionItems).values(
      items.map((item, at) => ({
        sessionId: session.id,
        position: at,
        exerciseId: item.exerciseId,
        dose: doseSchema.parse(item.dose ?? {}),
      })),
    );
  }
  return program.id;
}
