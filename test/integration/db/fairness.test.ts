import { randomUUID } from 'node:crypto';
import { eq, inArray, sql } from 'drizzle-orm';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { assignProgram } from '../../../lib/db/assignments.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { fairOrder, isDue, priorityOf } from '../../../lib/db/fairness.ts';
import { cancelByOperator } from '../../../lib/db/operate.ts';
import { retryConflict } from '../../../lib/db/outage.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { claimRender, deadLetter, markUploaded, retryRender } from '../../../lib/db/renders.ts';
import { requeueRenders } from '../../../lib/db/requeue.ts';
import { rows } from '../../../lib/db/rows.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { queuePriority } from '../../../lib/domain/fair-order.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';

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
const assign = (programId: string) =>
  assignProgram(database.db, { programId, orgId, patientId: 'patient-1', notifyWhenReady: false, by: 'x' });

/** What the queue would hand out next. */
async function next() {
  const [row] = await rows<{ id: string; generation: number; fair_key: string }>(
    database.db,
    sql`select id, generation, fair_key from exercise_renders r
         where status = 'pending' and ${isDue} order by ${fairOrder} limit 1`,
  );
  return row ?? null;
}

const ERROR = { code: 'ffmpeg_failed', message: 'The video could not be composed.' };

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

type Step =
  | { do: 'publish'; by: string; count: number; assigned: boolean }
  | { do: 'assign'; nth: number }
  | { do: 'take'; count: number; end: 'uploaded' | 'failed' | 'retry' }
  | { do: 'republish'; nth: number; by: string }
  | { do: 'operator-retry' }
  | { do: 'retries-due' };

const specialist = fc.constantFrom('ada', 'ben', 'cleo', 'dan');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('publish' as const),
      by: specialist,
      count: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 8 })),
      assigned: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('take' as const),
      count: fc.integer({ min: 1, max: 5 }),
      end: fc.constantFrom('uploaded' as const, 'uploaded' as const, 'failed' as const, 'retry' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('assign' as const), nth: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('republish' as const), nth: fc.nat(20), by: specialist }) },
  { weight: 1, arbitrary: fc.constant({ do: 'operator-retry' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'retries-due' as const }) },
);

/** One wait in the queue: from an enqueue to the first claim after it. */
interface Wait {
  key: string;
  from: number;
  /** Null while it lasts. */
  until: number | null;
}

/** Runs the steps, then bakes what is left; answers every wait and every claim of a render waiting for its first. */
async function play(steps: readonly Step[]) {
  const { db } = database;
  const programIds: string[] = [];
  const waits = new Map<string, Wait>();
  const claims: { key: string; isRetry: boolean; comesBack: boolean }[] = [];
  const enqueued = async (queued: readonly { id: string; generation: number }[]) => {
    if (queued.length === 0) return;
    const ids = queued.map(({ id }) => id);
    for (const row of await db.select().from(exerciseRenders).where(inArray(exerciseRenders.id, ids))) {
      waits.set(`${row.id} ${row.generation}`, { key: row.fairKey, from: claims.length, until: null });
    }
  };
  const takeOne = async (end: 'uploaded' | 'failed' | 'retry') => {
    const taken = await take(end);
    if (!taken) return false;
    const wait = waits.get(`${taken.id} ${taken.generation}`) as Wait;
    claims.push({ key: taken.fair_key, isRetry: wait.until !== null, comesBack: end === 'retry' });
    wait.until ??= claims.length;
    return true;
  };
  const retriesDue = () => db.update(exerciseRenders).set({ notBefore: null });
  for (const now of steps) {
    const programId = 'nth' in now ? programIds[now.nth % Math.max(1, programIds.length)] : undefined;
    if (now.do === 'publish') {
      const made = await programOf(newItems(now.count));
      programIds.push(made);
      if (now.assigned) await assign(made);
      await enqueued((await publish(made, now.by)).queued);
    }
    if (now.do === 'assign' && programId) await assign(programId);
    if (now.do === 'republish' && programId) await enqueued((await publish(programId, now.by)).queued);
    if (now.do === 'operator-retry') {
      const options = { from: 'failed' as const, cause: 'retry', forgetVideo: false };
      await enqueued(await db.transaction((tx) => requeueRenders(tx, sql`true`, options)));
    }
    if (now.do === 'retries-due') await retriesDue();
    if (now.do === 'take') for (let n = 0; n < now.count; n++) await takeOne(now.end);
  }
  await retriesDue();
  const bound = claims.length + 5 * waits.size;
  while ((await takeOne('uploaded')) && claims.length <= bound);
  return { waits: [...waits.values()], claims };
}

describe('the fair order', () => {
  it('lets a single render wait for at most one more of each other specialist', async () => {
    await publishNew('ada', 20);
    await publishNew('ben', 20);
    await takeInTurn(5);
    await publishNew('cleo', 1);
    const before = (await takeInTurn(6)).slice(0, -1);
    const until = before.indexOf('cleo');
    expect(until).toBeGreaterThanOrEqual(0);
    expect(before.slice(0, until).filter((key) => key === 'ada').length).toBeLessThanOrEqual(1);
    expect(before.slice(0, until).filter((key) => key === 'ben').length).toBeLessThanOrEqual(1);
  });

  it('is not held back by a retry that waits for its time: newcomers do not overtake for ever', async () => {
    await publishNew('ada', 1);
    await take('retry');
    await publishNew('ben', 12);
    await takeInTurn(4);
    const turns: string[] = [];
    for (let n = 0; n < 6; n++) {
      await publishNew('cleo', 1);
      turns.push(...(await takeInTurn(1)));
    }
    expect(turns.filter((key) => key === 'ben')).toHaveLength(3);
  });

  it('goes on counting where all that was ever claimed is enqueued anew', async () => {
    await publishNew('ada', 5);
    for (let n = 0; n < 5; n++) await take('failed');
    await database.db.transaction((tx) =>
      requeueRenders(tx, sql`true`, { from: 'failed', cause: 'retry', forgetVideo: false }),
    );
    await publishNew('ben', 2);
    expect(await takeInTurn(4)).toEqual(['ada', 'ben', 'ada', 'ben']);
  });

  it('is not moved on by what is cancelled before anybody took it, which keeps its order for a retry', async () => {
    await publishNew('ada', 20);
    await publishNew('ben', 40);
    await takeInTurn(4);
    const waiting = async () => (await tagsOf('ben')).slice(2).map(({ id }) => id);
    const cancelled = await waiting();
    await cancelByOperator(database.db, cancelled, 'cancel');
    await publishNew('cleo', 1);
    expect(await takeInTurn(3)).toContain('cleo');
    await database.db.transaction((tx) =>
      requeueRenders(tx, sql`true`, { from: 'failed', cause: 'retry', forgetVideo: false }),
    );
    expect(await waiting()).toEqual(cancelled);
  });

  it('gives what failed a new place, behind what its requester waits for', async () => {
    const programId = await programOf(newItems(1));
    await publish(programId, 'ada');
    await take('failed');
    await publishNew('ben', 3);
    const { queued } = await publish(programId, 'ben');
    expect(queued).toMatchObject([{ generation: 1 }]);
    expect((await tagsOf('ben')).map(({ id }) => id)[3]).toBe(queued[0]!.id);
    expect(await tagsOf('ada')).toEqual([]);
  });

  it('leaves what an operator retries with whoever asked for it, at the end of their renders', async () => {
    await publishNew('ada', 3);
    await take('failed');
    const [failed] = await tagsOf('ada');
    await database.db.transaction((tx) =>
      requeueRenders(tx, sql`true`, { from: 'failed', cause: 'retry', forgetVideo: false }),
    );
    expect((await tagsOf('ada')).map(({ id }) => id)[2]).toBe(failed!.id);
  });

  it('gives every render of a specialist a round of its own, however many publishes go on at once', async () => {
    const programIds = await Promise.all(Array.from({ length: 8 }, () => programOf(newItems(3))));
    await Promise.all(programIds.map((id) => publish(id, 'ada')));
    const tags = (await tagsOf('ada')).map(({ tag }) => tag);
    expect(tags).toEqual(Array.from({ length: 24 }, (_, n) => n + 1));
  });

  it('is the same in SQL as in the queue', async () => {
    const row = fc.record({
      fair_tag: fc.integer({ min: 0, max: 10 ** 12 }),
      urgent: fc.boolean(),
      now: fc.oneof(fc.integer({ min: 1, max: 10 ** 12 }), fc.constantFrom(1, 499_999, 500_000, 500_001)),
    });
    const near = row.chain((r) =>
      fc.integer({ min: -5, max: 1_100_000 }).map((by) => ({ ...r, fair_tag: r.now + by })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(row, near), { minLength: 1, maxLength: 100 }), async (given) => {
        const found = await rows<{ priority: number }>(
          database.db,
          sql`select ${priorityOf(sql`r.now`)} as priority
                from jsonb_to_recordset(${JSON.stringify(given.map((r, nth) => ({ ...r, nth })))}::jsonb)
                  as r(fair_tag bigint, urgent boolean, now bigint, nth int) order by r.nth`,
        );
        expect(found.map(({ priority }) => priority)).toEqual(
          given.map((r) => queuePriority({ fairTag: r.fair_tag, urgent: r.urgent }, r.now)),
        );
      }),
      { numRuns: 20 },
    );
  });

  it('lets no specialist overtake another’s render more than once a round, and serves everybody, whatever comes', async () => {
    await fc.assert(
      fc
        .asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
          const { waits, claims } = await play(steps);
          for (const wait of waits) {
            expect(wait.until).not.toBeNull();
            const meanwhile = claims.slice(wait.from, wait.until ?? undefined);
            const of = (key: string) => meanwhile.filter((claim) => claim.key === key && !claim.isRetry).length;
            // What is tried again keeps its place, which a bump may hand on to another of the same specialist.
            const back = (key: string) =>
              claims.slice(0, wait.until ?? undefined).filter((c) => c.key === key && c.comesBack).length;
            for (const other of new Set(meanwhile.map(({ key }) => key))) {
              if (other === wait.key) continue;
              // One of several may count from a round that its specialist has been served in already; a single one never.
              const had = of(wait.key) > 1 ? 1 : 0;
              expect(of(other)).toBeLessThanOrEqual(of(wait.key) + had + back(wait.key) + back(other));
            }
          }
        })
        .beforeEach(async () => {
          await database.db.execute(sql`truncate exercise_renders, programs, sessions cascade`);
        }),
      { numRuns: 10 },
    );
  }, 120_000);
});

describe('what a patient waits for', () => {
  it('goes before the rest of its specialist when it is assigned after the publish, and nobody else’s place changes', async () => {
    const [first, second] = [await programOf(newItems(4)), await programOf(newItems(2))];
    await publish(first, 'ada');
    const { queued } = await publish(second, 'ada');
    await publishNew('ben', 3);
    const ben = await tagsOf('ben');
    const before = await tagsOf('ada');

    const { bumped } = await assign(second);

    const after = await tagsOf('ada');
    expect(after.map(({ tag }) => tag)).toEqual(before.map(({ tag }) => tag));
    expect(after.slice(0, 2)).toEqual(before.slice(4).map(({ id }, n) => ({ id, tag: n + 1, urgent: true })));
    expect(
      after
        .slice(0, 2)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(queued.map(({ id }) => id).sort());
    expect(after.map(({ urgent }) => urgent)).toEqual([true, true, false, false, false, false]);
    expect(after.slice(2).map(({ id }) => id)).toEqual(before.slice(0, 4).map(({ id }) => id));
    expect(bumped.map(({ id }) => id).sort()).toEqual(after.map(({ id }) => id).sort());
    expect(await tagsOf('ben')).toEqual(ben);
    expect((await assign(second)).bumped).toEqual([]);
  });

  it('is urgent from the start when the programme was assigned as a draft', async () => {
    await publishNew('ada', 3);
    const programId = await programOf(newItems(1));
    await assign(programId);
    const { queued, touched } = await publish(programId, 'ada');
    expect((await tagsOf('ada'))[0]).toMatchObject({ id: queued[0]!.id, urgent: true });
    expect(touched.length).toBeGreaterThan(1);
  });

  it('is urgent, too, where an earlier programme of somebody else asked for it, or where it had failed', async () => {
    const shared = newItems(2);
    await publish(await programOf([...newItems(2), ...shared]), 'ada');
    const needing = await programOf(shared);
    await assign(needing);
    expect((await publish(needing, 'ben')).queued).toEqual([]);
    expect((await tagsOf('ada')).map(({ urgent }) => urgent)).toEqual([true, true, false, false]);

    await take('failed');
    const { queued } = await publish(needing, 'ben');
    expect(await tagsOf('ben')).toMatchObject([{ id: queued[0]!.id, urgent: true }]);
  });

  it('is so no more when it is enqueued anew after the patient was given something else', async () => {
    const programId = await programOf(newItems(1));
    await assign(programId);
    await publish(programId, 'ada');
    await take('failed');
    await database.db.execute(sql`delete from assignments`);
    await publish(programId, 'ada');
    expect(await tagsOf('ada')).toMatchObject([{ urgent: false }]);
  });

  it('starves nobody, even where everything of one specialist is urgent', async () => {
    const busy = await programOf(newItems(10));
    await assign(busy);
    await publish(busy, 'ada');
    await publishNew('ben', 5);
    const turns = await takeInTurn(10);
    expect(turns.filter((key) => key === 'ben')).toHaveLength(5);
  });

  it('goes first in the present round, but not twice in one while somebody else waits in it', async () => {
    await publishNew('ben', 3);
    const turns: string[] = [];
    for (let n = 0; n < 4; n++) {
      const programId = await programOf(newItems(1));
      await assign(programId);
      await publish(programId, 'ada');
      do turns.push(...(await takeInTurn(1)));
      while (turns.at(-1) !== 'ada');
    }
    expect(turns).toEqual(['ada', 'ben', 'ada', 'ada', 'ben', 'ada']);
  });

  it('takes the same number of statements to bump, whether one or a hundred renders', async () => {
    const count = async (items: number) => {
      const programId = await programOf(newItems(items));
      await publish(programId, 'ada');
      return database.countStatements(() => assign(programId));
    };
    expect(await count(100)).toBe(await count(1));
  });

  it('is bumped without deadlock amid publishes, claims and what the mirror notes', async () => {
    const shared = newItems(6);
    const programIds = await Promise.all(
      Array.from({ length: 6 }, (_, n) => programOf([...shared.slice(n), ...newItems(3), ...shared.slice(0, n)])),
    );
    const mirror = mirrorRows(database.db, 1_000);
    const note = async () => mirror.markDispatched((await mirror.changes({ staleMs: 0 })).reverse());
    await Promise.all(
      programIds.flatMap((id, n) => [
        publish(id, `specialist-${n % 3}`),
        assign(id),
        publish(id, 'ada'),
        note(),
        take('failed'),
        note(),
      ]),
    );
    const pending = await database.db.select().from(exerciseRenders).where(eq(exerciseRenders.status, 'pending'));
    expect(pending.filter(({ urgent }) => !urgent)).toEqual([]);
  });
});
