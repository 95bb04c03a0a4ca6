import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assignments, auditLog, exerciseRenders, organisations } from '../../../lib/db/schema/index.ts';
import { anExercise } from '../../support/clinic.ts';
import { aPublishedProgram, people, problemOf, startEdge, statementsOf, type TestEdge } from './fixture.ts';

const who = people();
const as = who.specialist;
let edge: TestEdge;
let exercise: string;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values([
    { id: who.manager.org, name: 'A' },
    { id: who.otherManager.org, name: 'B' },
  ]);
  exercise = (await anExercise(edge.db, { orgId: who.manager.org })).id;
});
afterAll(() => edge.close());

interface Item {
  exerciseId: string;
  dose: { reps: number };
  renderId: string | null;
}
interface Session {
  id: string;
  title: string;
  status: string;
  items: Item[];
}
interface Program {
  id: string;
  title: string;
  status: string;
  sessions: Session[];
}

async function post<T>(path: string, json?: object, caller: Parameters<TestEdge['call']>[2] = { as }): Promise<T> {
  const response = await edge.call('POST', path, { ...caller, ...(json && { json }) });
  expect(response.ok, `${path} answered ${response.status}`).toBe(true);
  return (await response.json()) as T;
}
const refusal = async (method: string, path: string, json?: object) =>
  problemOf(await edge.call(method, path, { as, ...(json && { json }) }));

const aSession = (reps: number, title = 'Core') =>
  post<Session>('/v1/sessions', { title, language: 'en', items: [{ exerciseId: exercise, dose: { reps } }] });
const aDraft = (reps: number) =>
  post<Program>('/v1/programs', {
    title: 'Knee',
    language: 'en',
    sessions: [
      { title: 'Monday', items: [{ exerciseId: exercise, dose: { reps } }] },
      { title: 'Rest day', items: [] },
    ],
  });

describe('a session that stands alone', () => {
  it('is made, changed, published once and changed no more', async () => {
    const { id } = await aSession(20);
    const changes = { title: 'Core II', items: [{ exerciseId: exercise, dose: { reps: 21 } }] };
    const changed = await edge.call('PATCH', `/v1/sessions/${id}`, { as, json: changes });
    expect(await changed.json()).toMatchObject({ title: 'Core II', status: 'draft', items: [{ dose: { reps: 21 } }] });
    expect(await post(`/v1/sessions/${id}/publish`)).toMatchObject({ total: 1, queued: 1 });
    const shown = await (await edge.call('GET', `/v1/sessions/${id}`, { as })).json();
    expect(shown).toMatchObject({ status: 'published', items: [{ renderId: expect.any(String) }] });
    expect((await refusal('PATCH', `/v1/sessions/${id}`, { title: 'x' })).code).toBe('already_published');
    expect(await post(`/v1/sessions/${id}/publish`)).toMatchObject({ total: 1, queued: 1 });
  });

  it('is listed without those of programmes, page by page', async () => {
    await aDraft(22);
    const made = [await aSession(23, 'One'), await aSession(24, 'Two')];
    const page = async (cursor = '') => {
      const response = await edge.call('GET', `/v1/sessions?limit=1${cursor}`, { as });
      return (await response.json()) as { items: Session[]; nextCursor: string };
    };
    const first = await page();
    expect(first.items.map(({ id }) => id)).toEqual([made[1]?.id]);
    expect((await page(`&cursor=${first.nextCursor}`)).items.map(({ id }) => id)).toEqual([made[0]?.id]);
  });

  it('is refused with an exercise of another clinic, and without any when it is published', async () => {
    const theirs = (await anExercise(edge.db, { orgId: who.otherManager.org })).id;
    const items = [{ exerciseId: exercise }, { exerciseId: theirs }];
    const problem = await refusal('POST', '/v1/sessions', { title: 'Mixed', language: 'en', items });
    expect(problem).toMatchObject({ httpStatus: 422, errors: [{ path: 'items.1.exerciseId' }] });
    const { id } = await post<Session>('/v1/sessions', { title: 'Empty', language: 'en' });
    expect((await refusal('POST', `/v1/sessions/${id}/publish`)).code).toBe('not_publishable');
  });

  it('is not one of a programme, which is published with it', async () => {
    const { sessions } = await aDraft(25);
    const ofProgram = sessions[0]?.id;
    expect((await refusal('POST', `/v1/sessions/${ofProgram}/publish`)).code).toBe('conflict');
    for (const path of [`/v1/sessions/${ofProgram}`, `/v1/sessions/${ofProgram}/archive`]) {
      expect((await refusal(path.endsWith('archive') ? 'POST' : 'GET', path)).httpStatus).toBe(404);
    }
  });
});

describe('attaching', () => {
  it('puts a copy at the end, which shares the video and is published with the programme', async () => {
    const session = await aSession(30, 'Warm-up');
    await post(`/v1/sessions/${session.id}/publish`);
    const draft = await aDraft(31);
    const { sessions } = await post<Program>(`/v1/programs/${draft.id}/sessions`, { sessionId: session.id });
    expect(sessions.map(({ title, status }) => [title, status])).toEqual([
      ['Monday', 'draft'],
      ['Rest day', 'draft'],
      ['Warm-up', 'draft'],
    ]);
    expect(await post(`/v1/programs/${draft.id}/publish`)).toMatchObject({ total: 2 });
    const rows = await edge.db.select().from(exerciseRenders).where(eq(exerciseRenders.exerciseId, exercise));
    expect(rows.filter(({ recipe }) => recipe.reps === 30)).toHaveLength(1);
  });

  it('takes only what is published, and only into a draft', async () => {
    const session = await aSession(32);
    const draft = await aDraft(33);
    const attach = (programId: string) =>
      refusal('POST', `/v1/programs/${programId}/sessions`, { sessionId: session.id });
    expect((await attach(draft.id)).code).toBe('not_published');
    await post(`/v1/sessions/${session.id}/publish`);
    await post(`/v1/sessions/${session.id}/archive`);
    expect((await attach(draft.id)).code).toBe('not_published');
    const { programId } = await aPublishedProgram(edge.db, who.manager.org, [exercise]);
    expect((await attach(programId)).code).toBe('already_published');
    const theirs = await post<Session>('/v1/sessions', { title: 'T', language: 'en' }, { as: who.otherManager });
    const foreign = await refusal('POST', `/v1/programs/${draft.id}/sessions`, { sessionId: theirs.id });
    expect(foreign).toMatchObject({ httpStatus: 422, errors: [{ path: 'sessionId' }] });
  });

  it('gives two at once a place each', async () => {
    const session = await aSession(34);
    await post(`/v1/sessions/${session.id}/publish`);
    const draft = await aDraft(35);
    const attach = () => post<Program>(`/v1/programs/${draft.id}/sessions`, { sessionId: session.id });
    const both = await Promise.all([attach(), attach()]);
    expect(Math.max(...both.map(({ sessions }) => sessions.length))).toBe(4);
  });
});

describe('a published programme', () => {
  it('is copied into a draft of the same sessions and doses, in three statements however large', async () => {
    const draft = await aDraft(40);
    await post(`/v1/programs/${draft.id}/publish`);
    let copy: Program | undefined;
    const statements = await statementsOf(edge, async () => {
      copy = await post<Program>(`/v1/programs/${draft.id}/copy`, { title: 'Knee, second month' });
    });
    expect(statements).toBeLessThanOrEqual(3);
    expect(copy).toMatchObject({
      title: 'Knee, second month',
      status: 'draft',
      sessions: [
        { title: 'Monday', status: 'draft', items: [{ exerciseId: exercise, dose: { reps: 40 }, renderId: null }] },
        { title: 'Rest day', items: [] },
      ],
    });
    expect((await post<Program>(`/v1/programs/${draft.id}/copy`, {})).title).toBe('Knee');
    expect(await post(`/v1/programs/${copy?.id}/publish`)).toMatchObject({ total: 1, queued: 1 });
  });

  it('is hidden from its patient when it is archived, keeps its videos, and is published and assigned no more', async () => {
    const { programId, sessionId, renderIds } = await aPublishedProgram(edge.db, who.manager.org, [exercise]);
    await edge.db.insert(assignments).values({ programId, patientId: who.patient.sub, assignedBy: 'x' });
    const seen = (path: string) => edge.call('GET', path, { as: who.patient });
    expect((await seen(`/v1/programs/${programId}/readiness`)).status).toBe(200);
    for (let twice = 0; twice < 2; twice++) {
      expect(await post(`/v1/programs/${programId}/archive`)).toMatchObject({ status: 'archived' });
    }
    expect((await seen(`/v1/programs/${programId}/readiness`)).status).toBe(404);
    expect((await seen(`/v1/sessions/${sessionId}/play`)).status).toBe(404);
    expect(await (await seen('/v1/me/programs')).json()).toMatchObject({ items: [] });
    const rows = await edge.db
      .select()
      .from(exerciseRenders)
      .where(eq(exerciseRenders.id, renderIds[0] ?? ''));
    expect(rows).toHaveLength(1);
    expect((await refusal('POST', `/v1/programs/${programId}/publish`)).code).toBe('conflict');
    expect((await refusal('POST', `/v1/programs/${programId}/assignments`, { patientId: 'p' })).code).toBe('conflict');
    expect((await refusal('PATCH', `/v1/programs/${programId}`, { title: 'x' })).code).toBe('already_published');
  });

  it('leaves a trace of who published, assigned, took back and archived it', async () => {
    const { id } = await aDraft(41);
    await post(`/v1/programs/${id}/publish`);
    await post(`/v1/programs/${id}/assignments`, { patientId: 'patient-9' });
    await edge.call('DELETE', `/v1/programs/${id}/assignments/patient-9`, { as });
    expect((await refusal('DELETE', `/v1/programs/${id}/assignments/patient-9`)).httpStatus).toBe(404);
    await post(`/v1/programs/${id}/archive`, undefined, { as: who.manager });
    const trace = await edge.db.select().from(auditLog).where(eq(auditLog.subject, id)).orderBy(auditLog.id);
    expect(trace.map(({ action, actor, role, orgId }) => [action, actor, role, orgId])).toEqual([
      ['program.publish', as.sub, 'specialist', as.org],
      ['program.assign', as.sub, 'specialist', as.org],
      ['program.unassign', as.sub, 'specialist', as.org],
      ['program.archive', who.manager.sub, 'manager', as.org],
    ]);
    expect(trace[0]?.detail).toMatchObject({ total: 1, queued: 1 });
  });
});
