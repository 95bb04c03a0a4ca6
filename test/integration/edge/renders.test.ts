import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { claimRender, heartbeat } from '../../../lib/db/renders.ts';
import { auditLog, exerciseRenders, organisations, renderEvents } from '../../../lib/db/schema/index.ts';
import { renderJobId } from '../../../lib/domain/render-states.ts';
import { anExercise } from '../../support/clinic.ts';
import { aPublishedProgram, type Caller, moveTo, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
const as = who.specialist;
const TOKEN = '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc';
let edge: TestEdge;
let exercise: string;
let renderId: string;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values([
    { id: who.manager.org, name: 'A' },
    { id: who.otherManager.org, name: 'B' },
  ]);
});
beforeEach(async () => {
  exercise = (await anExercise(edge.db)).id;
  renderId = (await aPublishedProgram(edge.db, who.manager.org, [exercise])).renderIds[0] ?? '';
});
afterAll(() => edge.close());

const ask = (what: 'retry' | 'cancel', caller: Caller, json?: object) =>
  edge.call('POST', `/v1/renders/${renderId}/${what}`, {
    as: caller,
    ...(what === 'retry' && { json: json ?? {} }),
  });
const codeOf = async (response: Response) => (await problemOf(response)).code;
const row = async () => {
  const [found] = await edge.db.select().from(exerciseRenders).where(eq(exerciseRenders.id, renderId));
  if (!found) throw new Error('no such render');
  return found;
};
const causes = async () =>
  (await edge.db.select().from(renderEvents).where(eq(renderEvents.renderId, renderId)).orderBy(renderEvents.id)).map(
    ({ cause }) => cause,
  );

describe('a retry', () => {
  it('queues a failed render anew under a job that the queue has never seen, and leaves a trace', async () => {
    await moveTo(edge.db, renderId, 'failed');
    const response = await ask('retry', as);
    expect(response.status).toBe(202);
    expect(await response.json()).toEqual({ id: renderId, status: 'pending', generation: 1 });
    const { recipeHash, fairKey, errorCode } = await row();
    expect({ fairKey, errorCode }).toEqual({ fairKey: as.sub, errorCode: null });
    expect(await edge.deps.queues.renders.getJobState(renderJobId(recipeHash, 1))).toBe('prioritized');
    const [trace] = await edge.db.select().from(auditLog).where(eq(auditLog.subject, renderId));
    expect(trace).toMatchObject({ action: 'render.retry', actor: as.sub, detail: { from: 'failed' } });
  });

  it('keeps the video of a failed bake, and gives up the one that Bunny failed with', async () => {
    for (const [errorCode, videoGuid] of [
      ['ffmpeg_failed', 'video-1'],
      ['transcode_failed', null],
    ] as const) {
      await moveTo(edge.db, renderId, 'failed');
      await edge.db.update(exerciseRenders).set({ errorCode, videoGuid: 'video-1' });
      expect((await ask('retry', as)).status).toBe(202);
      expect((await row()).videoGuid).toBe(videoGuid);
    }
  });

  it('of one that waits for a later attempt is due at once, without a new generation', async () => {
    await edge.db.update(exerciseRenders).set({ notBefore: new Date(Date.now() + 600_000) });
    expect(await (await ask('retry', as)).json()).toEqual({ id: renderId, status: 'pending', generation: 0 });
    expect((await row()).notBefore).toBeNull();
  });

  it.each(['pending', 'rendering', 'transcoding'] as const)('of one that is %s is refused', async (status) => {
    await moveTo(edge.db, renderId, status);
    expect(await codeOf(await ask('retry', as))).toBe('render_under_way');
  });

  it('of a ready one needs a superadmin and their word', async () => {
    await moveTo(edge.db, renderId, 'ready');
    expect(await codeOf(await ask('retry', as))).toBe('render_ready');
    expect(await codeOf(await ask('retry', who.superadmin))).toBe('render_ready');
    expect(await codeOf(await ask('retry', who.manager, { force: true }))).toBe('forbidden');
    expect((await row()).status).toBe('ready');
    expect((await ask('retry', who.superadmin, { force: true })).status).toBe(202);
    expect(await row()).toMatchObject({ status: 'pending', generation: 1, videoGuid: null });
  });

  it('asked for by many at once makes one new generation', async () => {
    await moveTo(edge.db, renderId, 'failed');
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask('retry', as)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409, 409, 409]);
    expect((await row()).generation).toBe(1);
  });
});

describe('a cancel', () => {
  it('ends a bake: its worker’s next heartbeat finds the lease gone', async () => {
    const claim = { id: renderId, generation: 0, token: TOKEN, by: 'worker-1', leaseMs: 60_000 };
    await claimRender(edge.db, claim);
    expect(await (await ask('cancel', as)).json()).toEqual({ id: renderId, status: 'failed', generation: 0 });
    expect(await heartbeat(edge.db, { id: renderId, token: TOKEN }, 60_000)).toBe(false);
    expect(await row()).toMatchObject({ status: 'failed', errorCode: 'cancelled' });
    expect(await causes()).toEqual(['published', 'claim', 'cancelled']);
  });

  it('of what has ended is refused', async () => {
    for (const status of ['ready', 'failed'] as const) {
      await moveTo(edge.db, renderId, status);
      expect(await codeOf(await ask('cancel', as))).toBe('render_ended');
    }
  });

  it('is refused while another clinic needs the same video, until it has archived what it plays', async () => {
    const { programId } = await aPublishedProgram(edge.db, who.otherManager.org, [exercise]);
    expect(await codeOf(await ask('cancel', who.manager))).toBe('render_shared');
    expect((await row()).status).toBe('pending');
    await edge.call('POST', `/v1/programs/${programId}/archive`, { as: who.otherManager });
    expect((await ask('cancel', who.manager)).status).toBe(200);
  });

  it('is refused to a specialist while a colleague needs it, and not to their manager', async () => {
    const colleague: Caller = { ...as, sub: 'specialist-z' };
    expect(await codeOf(await ask('cancel', colleague))).toBe('render_shared');
    expect((await ask('cancel', who.manager)).status).toBe(200);
  });

  it('of one render leaves the others of its programme alone', async () => {
    const { renderIds } = await aPublishedProgram(edge.db, who.manager.org, [exercise, exercise, exercise]);
    renderId = renderIds[1] ?? '';
    await ask('cancel', as);
    const rows = await edge.db.select().from(exerciseRenders);
    expect(rows.filter(({ id }) => renderIds.includes(id) && id !== renderId).map(({ status }) => status)).toEqual([
      'pending',
      'pending',
    ]);
  });
});

it('nobody of another clinic can retry or cancel, or learn that there is such a render', async () => {
  for (const what of ['retry', 'cancel'] as const) {
    expect((await problemOf(await ask(what, who.otherManager))).httpStatus).toBe(404);
  }
});
