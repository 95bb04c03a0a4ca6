import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exerciseRenders, organisations, renderEvents } from '../../../lib/db/schema/index.ts';
import { anExercise, aProgram } from '../../support/clinic.ts';
import { aPublishedProgram, moveTo, people, problemOf, startEdge, statementsOf, type TestEdge } from './fixture.ts';

const who = people();
const as = who.specialist;
let edge: TestEdge;
let exercise: string;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  exercise = (await anExercise(edge.db, { orgId: who.manager.org })).id;
});
afterAll(() => edge.close());

const preview = async (id: string) =>
  (await edge.call('GET', `/v1/programs/${id}/publish-preview`, { as })).json() as Promise<Record<string, unknown>>;
const aDraft = (...reps: number[]) =>
  aProgram(edge.db, who.manager.org, [reps.map((each) => ({ exerciseId: exercise, dose: { reps: each } }))]);

describe('a preview of a publish', () => {
  it('says what the publish then does', async () => {
    // Of the doses 1 to 5, one render in each state.
    const { renderIds } = await aPublishedProgram(edge.db, who.manager.org, Array(5).fill(exercise));
    for (const [nth, status] of (['ready', 'failed', 'rendering', 'transcoding', 'pending'] as const).entries()) {
      await moveTo(edge.db, renderIds[nth] ?? '', status);
    }
    const draft = await aDraft(1, 1, 2, 3, 4, 5, 50, 51, 51);
    const foretold = await preview(draft);
    expect(foretold).toEqual({ total: 7, ready: 1, inProgress: 3, toBake: 3, estimate: null, problems: [] });
    expect(await edge.db.$count(exerciseRenders)).toBe(5);
    const counts = await (await edge.call('POST', `/v1/programs/${draft}/publish`, { as })).json();
    expect(counts).toMatchObject({ total: 7, ready: 1, inProgress: 2, queued: 4 });
    expect(await preview(draft)).toMatchObject({ total: 7, ready: 1, inProgress: 6, toBake: 0 });
  });

  it('names each item that cannot become a video, and what has none', async () => {
    const bare = await anExercise(edge.db, { orgId: who.manager.org, durationMs: null });
    const draft = await aProgram(edge.db, who.manager.org, [[{ exerciseId: exercise }, { exerciseId: bare.id }]]);
    expect(await preview(draft)).toMatchObject({
      problems: [{ path: 'Session 1, item 2', code: 'source_missing', message: expect.stringContaining('no source') }],
    });
    expect(await preview(await aProgram(edge.db, who.manager.org, []))).toMatchObject({
      ...{ total: 0, problems: [{ code: 'not_publishable' }] },
    });
  });

  it('costs as many statements for hundreds of items as for one', async () => {
    const few = await aDraft(40);
    const many = await aDraft(...Array.from({ length: 99 }, (_, nth) => nth + 1));
    const statements = [await statementsOf(edge, () => preview(few)), await statementsOf(edge, () => preview(many))];
    expect(statements[1]).toBe(statements[0]);
  });

  it('foretells the time by what bakes took, and by what is queued before', async () => {
    const [render] = await edge.db.select().from(exerciseRenders).limit(1);
    const start = Date.now() - 900_000;
    const at = (seconds: number) => new Date(start + seconds * 1_000);
    const event = (
      fromStatus: 'pending' | 'rendering' | 'transcoding',
      toStatus: 'rendering' | 'transcoding' | 'ready',
    ) => ({
      ...{ renderId: render?.id ?? '', generation: 0, attempt: 1, cause: 'x', fromStatus, toStatus },
      at: at({ pending: 0, rendering: 10, transcoding: 40 }[fromStatus]),
    });
    await edge.db
      .insert(renderEvents)
      .values([event('pending', 'rendering'), event('rendering', 'transcoding'), event('transcoding', 'ready')]);
    await edge.db
      .update(exerciseRenders)
      .set({ status: 'failed', errorCode: 'cancelled', leaseToken: null, leaseExpiresAt: null });
    const { estimate } = await preview(await aDraft(60, 61, 62));
    // Two bakes of 10 s before the last of three, then its own and 30 s at Bunny.
    expect(estimate).toEqual({ likelySeconds: 60, latestSeconds: 60 });
    const allReady = await aDraft(63);
    await edge.call('POST', `/v1/programs/${allReady}/publish`, { as });
    const [last] = (await edge.db.select().from(exerciseRenders)).filter(({ recipe }) => recipe.reps === 63);
    await moveTo(edge.db, last?.id ?? '', 'ready');
    expect(await preview(allReady)).toMatchObject({ toBake: 0, estimate: { likelySeconds: 0, latestSeconds: 0 } });
  });

  it('is refused for what is archived', async () => {
    const { programId } = await aPublishedProgram(edge.db, who.manager.org, [exercise]);
    await edge.call('POST', `/v1/programs/${programId}/archive`, { as });
    const answer = await edge.call('GET', `/v1/programs/${programId}/publish-preview`, { as });
    expect((await problemOf(answer)).code).toBe('conflict');
  });
});
