import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { beforeEach } from 'vitest';
import { assignProgram } from '../../../lib/db/assignments.ts';
import { fairOrder, isDue } from '../../../lib/db/fairness.ts';
import { retryConflict } from '../../../lib/db/outage.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { claimRender, deadLetter, markUploaded, retryRender } from '../../../lib/db/renders.ts';
import { rows } from '../../../lib/db/rows.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const ERROR = { code: 'ffmpeg_failed', message: 'The video could not be composed.' };

/** A database in which specialists publish and one worker takes what is next; empty before each test. */
export function useFairScene() {
  const database = useTestDatabase();
  let orgId: string;
  let exerciseId: string;
  let doses = 0;
  beforeEach(async () => {
    await database.db.execute(sql`truncate exercise_renders, programs, sessions cascade`);
    orgId = await anOrganisation(database.db);
    exerciseId = (await anExercise(database.db)).id;
  });

  /** Items that nobody has asked for before. */
  const newItems = (count: number) =>
    Array.from({ length: count }, () => ({ exerciseId, dose: { sets: 2, restSeconds: ++doses / 1_000 } }));
  const programOf = (items: ReturnType<typeof newItems>) => aProgram(database.db, orgId, [items]);
  const publish = (programId: string, by: string) => publishProgram(database.db, { programId, orgId, by });
  const publishNew = async (by: string, count: number) => publish(await programOf(newItems(count)), by);
  const assign = (programId: string, alongside = async () => {}) =>
    assignProgram(database.db, {
      ...{ programId, orgId, patientId: 'patient-1', notifyWhenReady: false, by: 'x' },
      alongside,
    });

  /** What the queue would hand out next. */
  async function next() {
    const [row] = await rows<{ id: string; generation: number; fair_key: string }>(
      database.db,
      sql`select id, generation, fair_key from exercise_renders r
           where status = 'pending' and ${isDue} order by ${fairOrder} limit 1`,
    );
    return row ?? null;
  }

  async function take(end: 'uploaded' | 'failed' | 'retry') {
    const taken = await next();
    if (!taken) return null;
    const lease = { id: taken.id, token: randomUUID() };
    const claim = { ...taken, token: lease.token, by: 'worker-1', leaseMs: 60_000 };
    await retryConflict(() => claimRender(database.db, claim));
    if (end === 'failed') await deadLetter(database.db, lease, ERROR);
    if (end === 'retry') await retryRender(database.db, lease, { error: ERROR, delayMs: 600_000 });
    if (end === 'uploaded') {
      const made = {
        ...{ masterSha256: 'b'.repeat(64), videoGuid: lease.id, collectionId: null, manifestUrl: 'https://m' },
        ...{ captionsUrl: null, posterUrl: 'https://p', baselines: [], durationMs: 1, warnings: [] },
      };
      await markUploaded(database.db, lease, made, 60_000);
    }
    return taken;
  }

  const takeInTurn = async (count: number) => {
    const keys: string[] = [];
    for (let n = 0; n < count; n++) keys.push((await take('uploaded'))?.fair_key ?? 'nobody');
    return keys;
  };

  const tagsOf = async (key: string) =>
    (
      await database.db
        .select({ id: exerciseRenders.id, tag: exerciseRenders.fairTag, urgent: exerciseRenders.urgent })
        .from(exerciseRenders)
        .where(eq(exerciseRenders.fairKey, key))
    ).sort((a, b) => a.tag - b.tag);

  return { database, newItems, programOf, publish, publishNew, assign, take, takeInTurn, tagsOf };
}
