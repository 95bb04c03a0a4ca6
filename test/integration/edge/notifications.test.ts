import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tellReady } from '../../../lib/db/notifications.ts';
import { notifications, organisations } from '../../../lib/db/schema/index.ts';
import { anExercise } from '../../support/clinic.ts';
import { aPublishedProgram, type Caller, moveTo, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
let edge: TestEdge;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values([
    { id: who.manager.org, name: 'A' },
    { id: who.otherManager.org, name: 'B' },
  ]);
});
afterAll(() => edge.close());

interface Shown {
  id: string;
  kind: string;
  payload: Record<string, unknown>;
  readAt: string | null;
}
const list = async (as: Caller, query = '') => {
  const answer = await edge.call('GET', `/v1/notifications${query}`, { as });
  return (await answer.json()) as { items: Shown[]; nextCursor: string | null };
};
const tell = (recipient: string, orgId: string | null, n: number) =>
  edge.db.insert(notifications).values({ recipient, orgId, kind: 'exercise.render_failed', payload: { n } });

describe('notifications', () => {
  it('come newest first, page by page, and those of one moment each once', async () => {
    const as: Caller = { role: 'manager', sub: 'busy', org: who.manager.org };
    const rows = Array.from({ length: 7 }, (_, n) => ({
      recipient: as.sub,
      orgId: who.manager.org,
      kind: 'x',
      payload: { n },
    }));
    await edge.db.insert(notifications).values(rows);
    await tell(as.sub, who.manager.org, 7);
    const seen: Shown[] = [];
    for (let cursor = ''; ; ) {
      const page = await list(as, `?limit=3${cursor}`);
      seen.push(...page.items);
      if (page.nextCursor === null) break;
      cursor = `&cursor=${page.nextCursor}`;
    }
    expect(seen[0]?.payload).toEqual({ n: 7 });
    expect(seen.map(({ payload }) => payload.n).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('are a person’s own: not a namesake’s of another clinic, and a superadmin’s belong to no clinic', async () => {
    await tell(who.manager.sub, who.manager.org, 1);
    await tell(who.superadmin.sub, null, 2);
    const namesake: Caller = { ...who.otherManager, sub: who.manager.sub };
    expect((await list(who.manager)).items.map(({ payload }) => payload)).toEqual([{ n: 1 }]);
    expect((await list(namesake)).items).toEqual([]);
    expect((await list(who.superadmin)).items.map(({ payload }) => payload)).toEqual([{ n: 2 }]);
    const [mine] = (await list(who.manager)).items;
    const read = (as: Caller) => edge.call('POST', `/v1/notifications/${mine?.id}/read`, { as });
    for (const other of [namesake, who.superadmin, who.specialist]) expect((await read(other)).status).toBe(404);
    expect((await read(who.manager)).status).toBe(204);
    const first = (await list(who.manager)).items[0]?.readAt;
    expect((await read(who.manager)).status).toBe(204);
    expect((await list(who.manager)).items[0]?.readAt).toBe(first);
    expect((await list(who.manager, '?unread=true')).items).toEqual([]);
    expect(
      (await problemOf(await edge.call('GET', '/v1/notifications?unread=1', { as: who.manager }))).httpStatus,
    ).toBe(422);
  });
});

describe('a patient who asked for it', () => {
  const assign = (programId: string, patientId: string, notifyWhenReady = true) =>
    edge.call('POST', `/v1/programs/${programId}/assignments`, {
      as: who.specialist,
      json: { patientId, notifyWhenReady },
    });
  const toldOf = async (sub: string) => (await list({ ...who.patient, sub })).items.map(({ payload }) => payload);
  const aProgramOf = async (count: number) => {
    const exercise = (await anExercise(edge.db, { orgId: who.manager.org })).id;
    return aPublishedProgram(edge.db, who.manager.org, Array(count).fill(exercise));
  };

  it('is told once, when the last of a programme is ready, and nobody else', async () => {
    const { programId, renderIds } = await aProgramOf(2);
    await assign(programId, 'p-1');
    await assign(programId, 'p-2', false);
    for (const [nth, id] of renderIds.entries()) {
      expect(await toldOf('p-1')).toHaveLength(0);
      await moveTo(edge.db, id, 'ready');
      await edge.deps.statuses.changed({ renders: [id] });
      expect(await toldOf('p-1')).toHaveLength(nth);
    }
    expect(await toldOf('p-1')).toMatchObject([{ programId }]);
    await moveTo(edge.db, renderIds[0] ?? '', 'failed');
    await moveTo(edge.db, renderIds[0] ?? '', 'ready');
    await edge.deps.statuses.changed({ renders: renderIds });
    expect(await tellReady(edge.db)).toBe(0);
    expect([await toldOf('p-1'), await toldOf('p-2')].map(({ length }) => length)).toEqual([1, 0]);
  });

  it('is told once also where two end at once, and by the duty where nobody else came to it', async () => {
    const { programId, renderIds } = await aProgramOf(2);
    await assign(programId, 'p-3');
    for (const id of renderIds) await moveTo(edge.db, id, 'ready');
    const told = await Promise.all([
      tellReady(edge.db, [programId]),
      tellReady(edge.db),
      tellReady(edge.db, [programId]),
    ]);
    expect(told.reduce((sum, count) => sum + count)).toBe(1);
    expect(await toldOf('p-3')).toHaveLength(1);
  });

  it('is told at once where it was ready before it was assigned', async () => {
    const { programId, renderIds } = await aProgramOf(1);
    await moveTo(edge.db, renderIds[0] ?? '', 'ready');
    await assign(programId, 'p-4');
    expect(await toldOf('p-4')).toMatchObject([{ programId }]);
  });
});
