import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assignments, runs, sessionItems } from '../../../lib/db/schema/index.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { anExercise, aProgram } from '../../support/clinic.ts';
import { aPublishedProgram, moveTo, people, problemOf, startEdge, statementsOf, type TestEdge } from './fixture.ts';

const who = people();
const as = who.patient;
let edge: TestEdge;

beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.close());

/** One of its own for each programme: a render is shared by everybody who needs it, and its state with it. */
const anOwnExercise = async () => (await anExercise(edge.db, { name: 'Squat' })).id;

const assign = (programId: string) =>
  edge.db.insert(assignments).values({ programId, patientId: as.sub, assignedBy: 'specialist-a' });

/** A programme assigned to the patient whose renders are in these states. */
async function anAssignedProgram(...states: RenderStatus[]) {
  const exercise = await anOwnExercise();
  const exercises = states.map(() => exercise);
  const program = await aPublishedProgram(edge.db, as.org, exercises);
  for (const [i, status] of states.entries()) await moveTo(edge.db, program.renderIds[i]!, status);
  await assign(program.programId);
  return program;
}

describe('readiness', () => {
  const read = (programId: string, headers: Record<string, string> = {}) =>
    edge.call('GET', `/v1/programs/${programId}/readiness`, { as, headers });

  it.each<[RenderStatus[], object]>([
    [['ready', 'ready'], { status: 'ready', total: 2, ready: 2, readyThrough: 2, failed: [] }],
    [['ready', 'pending', 'ready'], { status: 'preparing', total: 3, ready: 2, readyThrough: 1, failed: [] }],
    [['transcoding'], { status: 'preparing', total: 1, ready: 0, readyThrough: 0, failed: [] }],
    [
      ['ready', 'failed'],
      { status: 'failed', total: 2, ready: 1, readyThrough: 1, failed: [{ code: 'ffmpeg_failed' }] },
    ],
  ])('of %j', async (states, expected) => {
    const { programId } = await anAssignedProgram(...states);
    expect(await (await read(programId)).json()).toMatchObject(expected);
  });

  it('answers 304 while nothing has changed, and anew when something has', async () => {
    const { programId, renderIds } = await anAssignedProgram('pending');
    const first = await read(programId);
    const etag = first.headers.get('etag')!;
    expect(etag).toMatch(/^"[\w-]+"$/);
    expect(first.headers.get('cache-control')).toBe('private, no-cache');
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const same = await read(programId, { 'if-none-match': value });
      expect([same.status, await same.text(), same.headers.get('etag')]).toEqual([304, '', etag]);
    }
    await moveTo(edge.db, renderIds[0]!, 'ready');
    await edge.deps.statuses.changed({ renders: renderIds });
    const changed = await read(programId, { 'if-none-match': etag });
    expect(await changed.json()).toMatchObject({ status: 'ready' });
    expect(changed.headers.get('etag')).not.toBe(etag);
  });

  it('costs two statements, however many items, and none for all who ask with it', async () => {
    const { programId } = await anAssignedProgram('ready', 'pending', 'rendering', 'failed');
    const all = () => Promise.all(Array.from({ length: 50 }, () => read(programId)));
    expect(await statementsOf(edge, all)).toBe(2);
  });

  it('is shown to the clinic before anybody is assigned, a draft’s too', async () => {
    const { programId } = await aPublishedProgram(edge.db, as.org, [await anOwnExercise()]);
    const path = (id: string) => `/v1/programs/${id}/readiness`;
    const clinic = await edge.call('GET', path(programId), { as: who.specialist });
    expect(await clinic.json()).toMatchObject({ status: 'preparing', total: 1 });
    const draft = await aProgram(edge.db, as.org, []);
    expect(await (await edge.call('GET', path(draft), { as: who.manager })).json()).toMatchObject({ total: 0 });
  });

  it('is not told to a patient of what is not published or no longer is', async () => {
    const draft = await aProgram(edge.db, as.org, [[{ exerciseId: await anOwnExercise() }]]);
    await assign(draft);
    expect((await read(draft)).status).toBe(404);
    const { programId } = await anAssignedProgram('ready');
    await edge.call('POST', `/v1/programs/${programId}/archive`, { as: who.manager });
    expect((await read(programId)).status).toBe(404);
  });
});

describe('my programmes', () => {
  it('come newest assignment first, page by page, each with its sessions and readiness', async () => {
    const me = { ...who.otherPatient, sub: 'patient-with-three' };
    const made: string[] = [];
    for (const status of ['ready', 'failed', 'pending'] as const) {
      const exercise = await anOwnExercise();
      const { programId, renderIds } = await aPublishedProgram(edge.db, me.org, [exercise, exercise]);
      await moveTo(edge.db, renderIds[0]!, status);
      await edge.db.insert(assignments).values({ programId, patientId: me.sub, assignedBy: 'specialist-b' });
      made.unshift(programId);
    }
    type Page = { items: { id: string; sessions: object[]; readiness: object }[]; nextCursor: string | null };
    const page = async (query: string) =>
      (await (await edge.call('GET', `/v1/me/programs?${query}`, { as: me })).json()) as Page;
    const first = await page('limit=2');
    const second = await page(`limit=2&cursor=${first.nextCursor}`);
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(made);
    expect(second.nextCursor).toBeNull();
    expect([...first.items, ...second.items]).toMatchObject([
      { sessions: [{ title: 'Session 1' }], readiness: { status: 'preparing', total: 2, ready: 0 } },
      { sessions: [{ title: 'Session 1' }], readiness: { status: 'failed', total: 2, ready: 0 } },
      { sessions: [{ title: 'Session 1' }], readiness: { status: 'preparing', total: 2, ready: 1 } },
    ]);
    expect(await statementsOf(edge, () => page('limit=50'))).toBe(1);
  });
});

describe('play', () => {
  const play = async (sessionId: string) => {
    const response = await edge.call('GET', `/v1/sessions/${sessionId}/play`, { as });
    expect(response.headers.get('cache-control')).toBe('no-store');
    return (await response.json()) as { status: string; items: Record<string, unknown>[] };
  };

  it('gives every address of what is ready', async () => {
    const { sessionId } = await anAssignedProgram('ready');
    expect(await play(sessionId)).toMatchObject({
      status: 'ready',
      items: [
        {
          position: 0,
          exerciseName: 'Squat',
          status: 'ready',
          hlsUrl: 'https://vz-test.b-cdn.net/video-1/playlist.m3u8',
          manifestUrl: 'https://zone.test/manifest.json',
          captionsUrl: 'https://zone.test/captions.vtt',
          posterUrl: 'https://zone.test/poster.jpg',
          baselines: [{ name: '720p', url: 'https://zone.test/720p.mp4' }],
          dose: { reps: 1 },
        },
      ],
    });
  });

  it.each(['pending', 'rendering', 'transcoding', 'failed'] as const)(
    'says of what is %s its place, name and state, and nothing more',
    async (status) => {
      const { sessionId, renderIds } = await anAssignedProgram('ready', status);
      // As after a deliberate new bake: the row still carries what the last one made.
      await moveTo(edge.db, renderIds[1]!, 'ready');
      await moveTo(edge.db, renderIds[1]!, status);
      const { status: whole, items } = await play(sessionId);
      expect(whole).toBe(status === 'failed' ? 'failed' : 'preparing');
      expect(items[0]).toHaveProperty('hlsUrl');
      expect(items[1]).toEqual({ position: 1, exerciseName: 'Squat', status });
    },
  );

  it('shows the clinic a draft as waiting', async () => {
    const id = await aProgram(edge.db, as.org, [[{ exerciseId: await anOwnExercise() }]]);
    const program = await edge.call('GET', `/v1/programs/${id}`, { as: who.manager });
    const [session] = ((await program.json()) as { sessions: { id: string }[] }).sessions;
    const response = await edge.call('GET', `/v1/sessions/${session?.id}/play`, { as: who.manager });
    expect(await response.json()).toMatchObject({ status: 'preparing', items: [{ status: 'pending' }] });
  });

  it('costs one statement', async () => {
    const { sessionId } = await anAssignedProgram('ready', 'ready', 'ready');
    expect(await statementsOf(edge, () => play(sessionId))).toBe(1);
  });
});

describe('a run', () => {
  const begin = (sessionId: string) => edge.call('POST', `/v1/sessions/${sessionId}/runs`, { as });

  it.each([
    [['ready', 'transcoding'], 'session_preparing'],
    [['ready', 'pending'], 'session_preparing'],
    [['ready', 'failed'], 'session_failed'],
  ] as [RenderStatus[], string][])('does not begin while renders are %j', async (states, code) => {
    const { sessionId } = await anAssignedProgram(...states);
    expect(await problemOf(await begin(sessionId))).toMatchObject({ httpStatus: 409, code });
    expect(await edge.db.select().from(runs).where(eq(runs.sessionId, sessionId))).toEqual([]);
  });

  it('begins once everything plays, and again after that', async () => {
    const { sessionId } = await anAssignedProgram('ready', 'ready');
    const first = await begin(sessionId);
    expect(first.status).toBe(201);
    expect(await first.json()).toMatchObject({ sessionId, id: expect.any(String), startedAt: expect.any(String) });
    expect((await begin(sessionId)).status).toBe(201);
    const stored = await edge.db.select().from(runs).where(eq(runs.sessionId, sessionId));
    expect(stored).toMatchObject([{ patientId: as.sub }, { patientId: as.sub }]);
  });

  it('of an empty session does not begin', async () => {
    const { sessionId } = await anAssignedProgram('ready');
    await edge.deps.database.db.delete(sessionItems).where(eq(sessionItems.sessionId, sessionId));
    expect(await problemOf(await begin(sessionId))).toMatchObject({ code: 'session_preparing' });
  });
});
