import { and, eq, exists, sql } from 'drizzle-orm';
import { AppError } from '../errors.ts';
import type { Executor } from './client.ts';
import { assignments, programs } from './schema/index.ts';

export interface Assignment {
  programId: string;
  patientId: string;
  notifyWhenReady: boolean;
  createdAt: Date;
  /** False where the patient had the programme already and only the wish to be told was set anew. */
  created: boolean;
}

/**
 * Gives a programme to a patient of its organisation, before or after it is published. `orgId` null: any organisation's.
 * Throws `not_found`, `conflict` (archived).
 */
export async function assignProgram(
  db: Executor,
  input: { programId: string; orgId: string | null; patientId: string; notifyWhenReady: boolean; by: string },
): Promise<Assignment> {
  const [program] = await db
    .select({ status: programs.status })
    .from(programs)
    .where(and(eq(programs.id, input.programId), input.orgId === null ? undefined : eq(programs.orgId, input.orgId)));
  if (!program) throw new AppError('not_found');
  if (program.status === 'archived') {
    throw new AppError('conflict', { sentence: 'An archived programme cannot be assigned.' });
  }
  const { programId, patientId, notifyWhenReady, by: assignedBy } = input;
  const [assignment] = await db
    .insert(assignments)
    .values({ programId, patientId, notifyWhenReady, assignedBy })
    .onConflictDoUpdate({ target: [assignments.programId, assignments.patientId], set: { notifyWhenReady } })
    .returning({
      programId: assignments.programId,
      patientId: assignments.patientId,
      notifyWhenReady: assignments.notifyWhenReady,
      createdAt: assignments.createdAt,
      // A row that this statement inserted has no deleting transaction; one that it updated has.
      created: sql<boolean>`xmax = 0`,
    });
  if (!assignment) throw new Error('the assignment was not stored');
  return assignment;
}

/** Takes a programme back from a patient; false where they did not have it in this organisation. */
export async function unassignProgram(
  db: Executor,
  { programId, orgId, patientId }: { programId: string; orgId: string | null; patientId: string },
): Promise<boolean> {
  const ofOrg =
    orgId === null
      ? undefined
      : exists(
          db
            .select({ one: sql`1` })
            .from(programs)
            .where(and(eq(programs.id, assignments.programId), eq(programs.orgId, orgId))),
        );
  const removed = await db
    .delete(assignments)
    .where(and(eq(assignments.programId, programId), eq(assignments.patientId, patientId), ofOrg))
    .returning({ id: assignments.id });
  return removed.length > 0;
}
