import { eq, inArray } from 'drizzle-orm';
import { afterEach, expect, it } from 'vitest';
import { assignProgram } from '../../../lib/db/assignments.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { claimRender, deadLetter } from '../../../lib/db/renders.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { done } from '../../../lib/queue/jobs.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { runJobs } from '../../../lib/queue/run-jobs.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';

const database = useTestDatabase();
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** A consumer that takes one job after the other, and each only when it is let. */
function startTurns(connection: { redisUrl: string; prefix: string }) {
  const taken: string[] = [];
  let go: () => void = () => undefined;
  const runner = runJobs({
    ...connection,
    kind: 'render',
    concurrency: 1,
    handler: async ({ renderId, generation }) => {
      const lease = { id: renderId, token: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc' };
      await claimRender(database.db, { ...lease, generation, by: 'worker-1', leaseMs: 60_000 });
      const allowed = new Promise<void>((resolve) => {
        go = resolve;
      });
      taken.push(renderId);
      await allowed;
      await deadLetter(database.db, lease, { code: 'cancelled', message: 'Done with.' });
      return done('ok');
    },
    log: silentLog,
  });
  opened.push(async () => {
    go();
    await runner.close(2_000);
  });
  const atLeast = (count: number) => waitFor(() => taken.length >= count, { label: `${count} jobs to be taken` });
  return {
    /** Ends the job under way; answers the next one's render. */
    async next() {
      const count = taken.length + 1;
      go();
      await atLeast(count);
      return taken.at(-1);
    },
  };
}

it('a specialist’s single render waits for at most one of another’s hundred, and what a patient waits for is next', async () => {
  const { db } = database;
  const { url, prefix } = testRedis();
  const connection = { redisUrl: url, prefix };
  const queues = openQueues(connection, silentLog);
  opened.push(queues.close);
  const mirror = createMirror({ queue: queues.renders, rows: mirrorRows(db, 200), log: silentLog });
  const orgId = await anOrganisation(db);
  const exercise = await anExercise(db);
  let doses = 0;
  const publish = async (by: string, count: number) => {
    const items = Array.from({ length: count }, () => ({ exerciseId: exercise.id, dose: { restSeconds: ++doses } }));
    const programId = await aProgram(db, orgId, [items]);
    const { queued, touched } = await publishProgram(db, { programId, orgId, by });
    expect(await mirror.dispatch(touched)).toBe(true);
    return { programId, ids: queued.map(({ id }) => id) };
  };
  const specialistOf = async (id: string | undefined) =>
    (
      await db
        .select()
        .from(exerciseRenders)
        .where(eq(exerciseRenders.id, id ?? ''))
    )[0]?.fairKey;

  await publish('ada', 100);
  const turns = startTurns(connection);
  for (let n = 0; n < 3; n++) expect(await specialistOf(await turns.next())).toBe('ada');

  const single = await publish('ben', 1);
  const two = [await turns.next(), await turns.next()];
  expect(two).toContain(single.ids[0]);

  const batch = await publish('ben', 19);
  const last = await publish('ben', 1);
  const { bumped } = await assignProgram(db, {
    ...{ programId: last.programId, orgId, patientId: 'patient-1', notifyWhenReady: false, by: 'ben' },
  });
  await mirror.dispatch(bumped);
  const [urgent] = await db.select().from(exerciseRenders).where(inArray(exerciseRenders.id, last.ids));
  expect(urgent?.urgent).toBe(true);
  expect((await queues.renders.getJob(urgent!.recipeHash))?.priority).toBe(urgent!.mirroredPriority);
  const next = [await turns.next(), await turns.next()];
  expect(next).toContain(urgent!.id);
  expect(next.some((id) => batch.ids.includes(id ?? ''))).toBe(false);
});
