import { randomUUID } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { publishProgram } from '../../../lib/db/publish.ts';
import { maySee } from '../../../lib/db/readiness.ts';
import { assignments, programs } from '../../../lib/db/schema/index.ts';
import { visibleTo } from '../../../lib/db/viewer.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();

it('who may see which programme is told of many at once as of each alone, in one statement', async () => {
  const { db } = database;
  const [orgId, other] = [await anOrganisation(db), await anOrganisation(db)];
  const exercise = await anExercise(db, { orgId });
  const [draft, published] = [
    await aProgram(db, orgId, [[{ exerciseId: exercise.id }]]),
    await aProgram(db, orgId, [[{ exerciseId: exercise.id }]]),
  ];
  await publishProgram(db, { programId: published, orgId, by: 'specialist-1' });
  for (const programId of [draft, published])
    await db.insert(assignments).values({ programId, patientId: 'patient-1', assignedBy: 'x' });
  const viewers = [null, orgId, other].flatMap((org) =>
    [null, 'patient-1', 'patient-2'].map((patientId) => ({ orgId: org, patientId })),
  );
  const asked = [draft, published, randomUUID()].flatMap((programId) =>
    viewers.map((viewer) => ({ programId, viewer })),
  );
  const alone = await Promise.all(
    asked.map(async ({ programId, viewer }) => {
      const found = await db
        .select({ id: programs.id })
        .from(programs)
        .where(and(eq(programs.id, programId), visibleTo(db, viewer)));
      return found.length > 0;
    }),
  );
  let together: boolean[] = [];
  const statements = await database.countStatements(async () => {
    together = await maySee(db, asked);
  });
  expect(together).toEqual(alone);
  expect(together.filter(Boolean)).toHaveLength(6);
  expect(statements).toBe(1);
});
