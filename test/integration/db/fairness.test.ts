import { inArray, sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { priorityOf } from '../../../lib/db/fairness.ts';
import { cancelByOperator } from '../../../lib/db/operate.ts';
import { requeueRenders } from '../../../lib/db/requeue.ts';
import { rows } from '../../../lib/db/rows.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { queuePriority } from '../../../lib/domain/fair-order.ts';
import { useFairScene } from './fair-scene.ts';

const { database, newItems, programOf, publish, publishNew, assign, take, takeInTurn, tagsOf } = useFairScene();

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

const overlap = (a: Wait, b: Wait) =>
  a.from < (b.until ?? Number.POSITIVE_INFINITY) && b.from < (a.until ?? Number.POSITIVE_INFINITY);

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
  // As passing time does it: without a trace in the row, whose last change says since when it has waited.
  const retriesDue = () => db.execute(sql`update exercise_renders set not_before = null where not_before is not null`);
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

/** ada's first comes back, urgent, to a later round of hers, after she has been served in the one that ben still waits for. */
const goesBeforeItsOwn: Step[] = [
  { do: 'publish', by: 'ada', count: 1, assigned: true },
  { do: 'publish', by: 'ada', count: 2, assigned: false },
  { do: 'publish', by: 'ben', count: 2, assigned: true },
  { do: 'take', count: 1, end: 'failed' },
  { do: 'republish', nth: 0, by: 'ada' },
  { do: 'take', count: 2, end: 'uploaded' },
];

/** ada's only one fails and is urgent again in the round that dan waits for. */
const urgentAnew: Step[] = [
  { do: 'publish', by: 'ada', count: 1, assigned: false },
  { do: 'publish', by: 'dan', count: 1, assigned: false },
  { do: 'assign', nth: 0 },
  { do: 'take', count: 1, end: 'failed' },
  { do: 'operator-retry' },
  { do: 'take', count: 1, end: 'uploaded' },
];

/** ada enters the second round, while ben's first waits for its time; once that is due, dan must not enter before her. */
const enqueuedAhead: Step[] = [
  { do: 'publish', by: 'ben', count: 2, assigned: false },
  { do: 'take', count: 1, end: 'retry' },
  { do: 'publish', by: 'ada', count: 1, assigned: false },
  { do: 'retries-due' },
  { do: 'publish', by: 'dan', count: 2, assigned: true },
  { do: 'take', count: 2, end: 'uploaded' },
];

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
            // One of several may count from a round that its specialist has been served in already; a single one never.
            const had = waits.some((w) => w !== wait && w.key === wait.key && overlap(w, wait)) ? 1 : 0;
            const meanwhile = claims.slice(wait.from, wait.until ?? undefined);
            const of = (key: string) => meanwhile.filter((claim) => claim.key === key && !claim.isRetry).length;
            // What is tried again keeps its place, which a bump may hand on to another of the same specialist.
            const back = (key: string) =>
              claims.slice(0, wait.until ?? undefined).filter((c) => c.key === key && c.comesBack).length;
            for (const other of new Set(meanwhile.map(({ key }) => key))) {
              if (other === wait.key) continue;
              expect(of(other)).toBeLessThanOrEqual(of(wait.key) + had + back(wait.key) + back(other));
            }
          }
        })
        .beforeEach(async () => {
          await database.db.execute(sql`truncate exercise_renders, programs, sessions cascade`);
        }),
      { numRuns: 10, examples: [[goesBeforeItsOwn], [urgentAnew], [enqueuedAhead]] },
    );
  }, 120_000);
});
