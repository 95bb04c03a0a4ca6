import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { organisations, programs } from '../../../lib/db/schema/index.ts';
import { anExercise } from '../../support/clinic.ts';
import { aPublishedProgram, people, problemOf, startEdge, statementsOf, type TestEdge } from './fixture.ts';

const who = people();
let edge: TestEdge;
let own: string;
let platform: string;
let theirs: string;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values([
    { id: who.manager.org, name: 'A' },
    { id: who.otherManager.org, name: 'B' },
  ]);
  own = (await anExercise(edge.db, { orgId: who.manager.org, name: 'Own' })).id;
  platform = (await anExercise(edge.db, { name: 'Platform' })).id;
  theirs = (await anExercise(edge.db, { orgId: who.otherManager.org, name: 'Theirs' })).id;
});
afterAll(() => edge.close());

const make = (json: object, as: Parameters<TestEdge['call']>[2] = { as: who.specialist }) =>
  edge.call('POST', '/v1/programs', { ...as, json });

interface Detail {
  id: string;
  sessions: { id: string; title: string; items: { exerciseId: string; exerciseName: string; dose: object }[] }[];
}

describe('making a programme', () => {
  it('keeps sessions and items in order and fills the dose in', async () => {
    const response = await make({
      title: 'Knee',
      language: 'EN',
      sessions: [
        { title: 'Monday', items: [{ exerciseId: own, dose: { reps: 12 } }, { exerciseId: platform }] },
        { items: [] },
      ],
    });
    expect(response.status).toBe(201);
    const made = (await response.json()) as Detail;
    expect(made).toMatchObject({
      orgId: who.specialist.org,
      status: 'draft',
      language: 'en',
      createdBy: who.specialist.sub,
      publishedAt: null,
      sessions: [
        {
          title: 'Monday',
          items: [
            { exerciseName: 'Own', dose: { sets: 3, reps: 12, restSeconds: 30 }, renderId: null },
            { exerciseName: 'Platform', dose: { sets: 3, reps: 10 } },
          ],
        },
        { title: 'Session 2', items: [] },
      ],
    });
    expect(await (await edge.call('GET', `/v1/programs/${made.id}`, { as: who.manager })).json()).toEqual(made);
  });

  it('asks a superadmin for whom, and nobody else', async () => {
    const base = { title: 'Knee', language: 'en' };
    const root = { as: who.superadmin };
    expect(await problemOf(await make(base, root))).toMatchObject({ httpStatus: 422, errors: [{ path: 'orgId' }] });
    const unknown = '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a11';
    expect(await (await make({ ...base, orgId: unknown }, root)).json()).toMatchObject({ orgId: unknown });
    expect((await make({ ...base, orgId: who.specialist.org })).status).toBe(201);
    expect((await problemOf(await make({ ...base, orgId: who.otherManager.org }))).code).toBe('forbidden');
  });

  it('knows an exercise by its id in capitals too', async () => {
    const sessions = [{ items: [{ exerciseId: own.toUpperCase() }] }];
    expect((await make({ title: 'Knee', language: 'en', sessions })).status).toBe(201);
  });

  it('names each item whose exercise this clinic does not have, and keeps nothing', async () => {
    const title = 'Never kept';
    const items = [{ exerciseId: own }, { exerciseId: theirs }, { exerciseId: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10' }];
    const problem = await problemOf(await make({ title, language: 'en', sessions: [{ items }] }));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'invalid_request' });
    expect(problem.errors?.map((error) => error.path)).toEqual([
      'sessions.0.items.1.exerciseId',
      'sessions.0.items.2.exerciseId',
    ]);
    expect(await edge.db.select().from(programs).where(eq(programs.title, title))).toEqual([]);
  });

  it.each<[string, object, string]>([
    ['a missing title', { title: undefined }, 'title'],
    ['a blank title', { title: ' \n ' }, 'title'],
    ['a language that is none', { language: 'english!' }, 'language'],
    ['an unknown field', { status: 'published' }, 'status'],
    [
      'too many reps',
      { sessions: [{ items: [{ exerciseId: 'X', dose: { reps: 101 } }] }] },
      'sessions.0.items.0.dose.reps',
    ],
    [
      'an unknown dose',
      { sessions: [{ items: [{ exerciseId: 'X', dose: { kilos: 5 } }] }] },
      'sessions.0.items.0.dose.kilos',
    ],
    ['an exercise that is no id', { sessions: [{ items: [{ exerciseId: '7' }] }] }, 'sessions.0.items.0.exerciseId'],
    ['sessions that are no list', { sessions: {} }, 'sessions'],
  ])('refuses %s, naming the field', async (_, change, path) => {
    const json = JSON.parse(JSON.stringify({ title: 'Knee', language: 'en', ...change }).replace('"X"', `"${own}"`));
    const problem = await problemOf(await make(json));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'invalid_request' });
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
  });

  it('sends as many statements for a hundred items as for one', async () => {
    const sessionsOf = (count: number) => [{ items: Array.from({ length: count }, () => ({ exerciseId: own })) }];
    const send = (count: number) => () => make({ title: 'Knee', language: 'en', sessions: sessionsOf(count) });
    expect(await statementsOf(edge, send(100))).toBe(await statementsOf(edge, send(1)));
  });

  it('takes a thousand items in one request', async () => {
    const items = Array.from({ length: 1000 }, (_, i) => ({ exerciseId: own, dose: { reps: (i % 100) + 1 } }));
    const made = (await (await make({ title: 'Long', language: 'en', sessions: [{ items }] })).json()) as Detail;
    expect(made.sessions[0]?.items).toHaveLength(1000);
  });
});

describe('changing a programme', () => {
  const draft = async () => {
    const response = await make({ title: 'Knee', language: 'en', sessions: [{ items: [{ exerciseId: own }] }] });
    return (await response.json()) as Detail;
  };

  it('replaces the sessions where they are given and leaves them alone where not', async () => {
    const { id, sessions } = await draft();
    const path = `/v1/programs/${id}`;
    const retitled = await edge.call('PATCH', path, { as: who.specialist, json: { title: 'Hip' } });
    expect(await retitled.json()).toMatchObject({ title: 'Hip', sessions: [{ id: sessions[0]?.id }] });
    const json = {
      sessions: [
        { title: 'New', items: [{ exerciseId: platform }] },
        { title: 'Other', items: [] },
      ],
    };
    const replaced = (await (await edge.call('PATCH', path, { as: who.manager, json })).json()) as Detail;
    expect(replaced.sessions.map(({ title }) => title)).toEqual(['New', 'Other']);
    expect(replaced.sessions[0]?.items).toMatchObject([{ exerciseName: 'Platform' }]);
  });

  it('leaves the draft as it was where an item is refused', async () => {
    const before = await draft();
    const path = `/v1/programs/${before.id}`;
    const json = { title: 'Changed', sessions: [{ items: [{ exerciseId: theirs }] }] };
    expect((await edge.call('PATCH', path, { as: who.specialist, json })).status).toBe(422);
    expect(await (await edge.call('GET', path, { as: who.specialist })).json()).toEqual(before);
  });

  it('is refused once it is published', async () => {
    const { programId } = await aPublishedProgram(edge.db, who.manager.org, [own]);
    const response = await edge.call('PATCH', `/v1/programs/${programId}`, { as: who.manager, json: { title: 'Hip' } });
    expect(await problemOf(response)).toMatchObject({ httpStatus: 409, code: 'already_published' });
  });

  it('lets a superadmin use the programme’s clinic’s exercises, not any clinic’s', async () => {
    const { id } = await draft();
    const change = (exerciseId: string) =>
      edge.call('PATCH', `/v1/programs/${id}`, {
        as: who.superadmin,
        json: { sessions: [{ items: [{ exerciseId }] }] },
      });
    expect((await change(own)).status).toBe(200);
    expect((await change(theirs)).status).toBe(422);
  });
});

it('lists the clinic’s programmes only, page by page', async () => {
  const as = who.otherManager;
  for (const title of ['1', '2', '3']) await make({ title, language: 'en' }, { as });
  type Listed = { items: { title: string }[]; nextCursor: string | null };
  const first = (await (await edge.call('GET', '/v1/programs?limit=2', { as })).json()) as Listed;
  const path = `/v1/programs?limit=2&cursor=${first.nextCursor}`;
  const second = (await (await edge.call('GET', path, { as })).json()) as Listed;
  expect([...first.items, ...second.items].map(({ title }) => title)).toEqual(['3', '2', '1']);
  expect(second.nextCursor).toBeNull();
});

describe('assigning', () => {
  it('is told from assigning again, and can be taken back once', async () => {
    const { programId } = await aPublishedProgram(edge.db, who.manager.org, [own]);
    const path = `/v1/programs/${programId}/assignments`;
    const as = who.specialist;
    const patientId = 'anna/o’neil 1';
    const first = await edge.call('POST', path, { as, json: { patientId } });
    expect(first.status).toBe(201);
    expect(await first.json()).toMatchObject({ programId, patientId, notifyWhenReady: false });
    const again = await edge.call('POST', path, { as, json: { patientId, notifyWhenReady: true } });
    expect(again.status).toBe(200);
    expect(await again.json()).toMatchObject({ notifyWhenReady: true });
    const one = `${path}/${encodeURIComponent(patientId)}`;
    expect((await edge.call('DELETE', one, { as: who.otherManager })).status).toBe(404);
    expect((await edge.call('DELETE', one, { as })).status).toBe(204);
    expect((await edge.call('DELETE', one, { as })).status).toBe(404);
  });

  it('refuses an archived programme and a patient without a name', async () => {
    const { programId } = await aPublishedProgram(edge.db, who.manager.org, [own]);
    const path = `/v1/programs/${programId}/assignments`;
    const nobody = await edge.call('POST', path, { as: who.specialist, json: { patientId: '' } });
    expect(await problemOf(nobody)).toMatchObject({ httpStatus: 422, errors: [{ path: 'patientId' }] });
    await edge.db
      .update(programs)
      .set({ status: 'archived', archivedAt: new Date() })
      .where(eq(programs.id, programId));
    const late = await edge.call('POST', path, { as: who.specialist, json: { patientId: 'anna' } });
    expect(await problemOf(late)).toMatchObject({ httpStatus: 409, code: 'conflict' });
  });
});
