import { eq, sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { waitFor } from '../../support/wait.ts';
import { useFairScene } from './fair-scene.ts';

const { database, newItems, programOf, publish, publishNew, assign, take, takeInTurn, tagsOf } = useFairScene();

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

  it('is urgent from the start, too, when the publish had to wait for the assignment', async () => {
    const programId = await programOf(newItems(1));
    let published: ReturnType<typeof publish> | undefined;
    await assign(programId, async () => {
      published = publish(programId, 'ada');
      const waiting = sql`select from pg_locks l join pg_stat_activity a using (pid)
        where a.datname = current_database() and not l.granted`;
      await waitFor(async () => (await database.db.execute(waiting)).rows.length > 0, { label: 'a waiting publish' });
    });
    const queued = (await published)?.queued ?? [];
    expect(await tagsOf('ada')).toMatchObject([{ id: queued[0]!.id, urgent: true }]);
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
