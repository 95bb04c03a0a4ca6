import { and, eq, exists, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { assignments, programs } from './schema/index.ts';

/** Whose eyes a programme is read with. */
export interface Viewer {
  /** Null: a superadmin, who sees every organisation's. */
  orgId: string | null;
  /** A patient sees what is published and assigned to them; null for the clinic, which sees all of its own. */
  patientId: string | null;
}

/** The condition on `programs` under which this viewer may know of a programme at all; `maySee` asks it for many at once. */
export function visibleTo(db: Executor, { orgId, patientId }: Viewer) {
  return and(
    orgId === null ? undefined : eq(programs.orgId, orgId),
    patientId === null ? undefined : eq(programs.status, 'published'),
    patientId === null
      ? undefined
      : exists(
          db
            .select({ one: sql`1` })
            .from(assignments)
            .where(and(eq(assignments.programId, programs.id), eq(assignments.patientId, patientId))),
        ),
  );
}
