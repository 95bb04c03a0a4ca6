import { and, eq, exists, sql } from 'drizzle-orm';
import { AppError } from '../errors.ts';
import type { Db, Executor } from './client.ts';
import { bumpAwaited } from './fairness.ts';
import { retryConflict } from './outage.ts';
import { rendersOf } from './publish.ts';
import { assignments, programs } from './schema/index.ts';

export interface Assignment {
  programId: string;
  patientId: string;
  notifyWhenReady: boolean;
  createdAt: Date;
  /** False where the patient had the programme already and only the wish to be told was set anew. */
  created: boolean;
}

export interface AssignInput {
  programId: string;
  orgId: string | null;
  patientId: string;
  notifyWhenReady: boolean;
  by: string;
  /** Runs in the same transaction, after all of it. */
  alongside?: (tx: Executor) => Promise<void>;
}

/**
 * Gives a programme to a patient of its organisation, before or after it is published. `orgId` null: any organisation's.
 * What the patient has to wait for becomes urgent; `bumped` are the renders whose place changed by that, for the mirror.
 * Throws `not_found`, `conflict` (archived).
 */
export function assignProgram(
  db: Db,
  input: AssignInput,
): Promise<{ assignment: Assignment; bumped: { id: string }[] }> {
  return retryConflict(() =>
    db.transaction(async (tx) => {
      const assignment = await insertAssignment(tx, input);
      const bumped = await bumpAwaited(tx, sql`r.id in (${rendersOf(input.programId)})`);
      await input.alongside?.(tx);
      return { assignment, bumped };
    }),
  );
}

async function insertAssignment(tx: Executor, input: AssignInput): Promise<Assignment> {
  const [program] = await tx
    .select({ status: programs.status })
    .from(programs)
    .where(and(eq(programs.id, input.programId), input.orgId === null ? undefined : eq(programs.orgId, input.orgId)))
    // A publish going on is waited for: either it sees the assignment, or this sees its renders.
    .for('key share');
  if (!program) throw new AppError('not_found');
  if (program.status === 'archived') {
    throw new AppError('conflict', { sentence: 'An archived programme cannot be assigned.' });
  }
  const { programId, patientId, notifyWhenReady, by: assignedBy } = input;
  const [assignment] = await tx
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
