import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import type { Lease, Render } from '../../../lib/db/move.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import {
  type Artefacts,
  claimRender,
  deadLetter,
  expireLeases,
  findRender,
  handBack,
  heartbeat,
  markReady,
  markTranscodeFailed,
  markTranscodeLost,
  markUploaded,
  postponeTranscode,
  recordVideo,
  retryRender,
} from '../../../lib/db/renders.ts';
import { requeueRenders } from '../../../lib/db/requeue.ts';
import { exerciseRenders, members, notifications, renderEvents } from '../../../lib/db/schema/index.ts';
import { applyMove, type MoveName, type RenderLife } from '../../../lib/domain/render-states.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();

async function aPendingRender(orgId?: string): Promise<Render> {
  const { db } = database;
  const org = orgId ?? (await anOrganisation(db));
  const exercise = await anExercise(db, orgId === undefined ? {} : { orgId });
  const { queued } = await publishProgram(db, {
    programId: await aProgram(db, org, [[{ exerciseId: exercise.id }]]),
    orgId: org,
    by: 'specialist-1',
  });
  return (await findRender(db, queued[0]!.id))!;
}

const claim = (render: Pick<Render, 'id' | 'generation'>, leaseMs = 60_000, token: string = randomUUID()) =>
  claimRender(database.db, { id: render.id, generation: render.generation, token, by: 'worker-1', leaseMs });

const leaseOf = (render: Render | null): Lease => ({ id: render!.id, token: render!.leaseToken! });
const reload = async (render: Pick<Render, 'id'>) => (await findRender(database.db, render.id))!;
const eventsOf = (render: Pick<Render, 'id'>) =>
  database.db.select().from(renderEvents).where(eq(renderEvents.renderId, render.id)).orderBy(renderEvents.id);

const artefacts: Artefacts = {
  masterSha256: 'b'.repeat(64),
  videoGuid: 'guid-1',
  collectionId: null,
  manifestUrl: 'https://cdn/renders/manifest.json',
  captionsUrl: null,
  posterUrl: 'https://cdn/renders/poster.jpg',
  baselines: [],
  durationMs: 10_000,
  warnings: [],
};
const error = { code: 'ffmpeg_failed', message: 'The video could not be composed.', detail: 'tail' };

describe('claim', () => {
  it('is won by exactly one of many that try at once', async () => {
    const render = await aPendingRender();
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim(render)));
    const won = claims.filter((row) => row !== null);
    expect(won).toHaveLength(1);
    expect(won[0]).toMatchObject({ status: 'rendering', attempts: 1, claimedBy: 'worker-1' });
  });

  it('is refused for an old generation and before the time of a retry', async () => {
    const render = await aPendingRender();
    expect(await claim({ ...render, generation: render.generation + 1 })).toBeNull();
    const lease = leaseOf(await claim(render));
    await retryRender(database.db, lease, { error, delayMs: 60_000 });
    expect(await claim(render)).toBeNull();
    expect(await reload(render)).toMatchObject({ status: 'pending', attempts: 1, errorCode: 'ffmpeg_failed' });
  });
});

describe('a lost lease', () => {
  it('changes nothing any more, whatever the zombie tries to write', async () => {
    const { db } = database;
    const render = await aPendingRender();
    const zombie = leaseOf(await claim(render, 0));
    await expireLeases(db, 100);
    const second = await claim(render);
    expect(second).toMatchObject({ status: 'rendering', attempts: 2 });
    const before = await reload(render);
    expect(await heartbeat(db, zombie, 60_000, { stage: 'mux', percent: 99 })).toBe(false);
    expect(await recordVideo(db, zombie, { guid: 'late', masterSha256: 'c'.repeat(64), collectionId: null })).toBe(
      false,
    );
    expect(await markUploaded(db, zombie, artefacts, 1_000)).toBeNull();
    expect(await handBack(db, zombie, { cause: 'shutdown' })).toBeNull();
    expect(await retryRender(db, zombie, { error, delayMs: 0 })).toBeNull();
    expect(await deadLetter(db, zombie, error)).toBeNull();
    expect(await reload(render)).toEqual(before);
    expect(await markUploaded(db, leaseOf(second), artefacts, 1_000)).toMatchObject({
      status: 'transcoding',
      videoGuid: 'guid-1',
    });
  });

  it('is freed by the sweep, counted once, until the attempts run out', async () => {
    const { db } = database;
    const render = await aPendingRender();
    await db.update(exerciseRenders).set({ maxAttempts: 2 }).where(eq(exerciseRenders.id, render.id));
    await claim(render, 0);
    expect((await expireLeases(db, 100)).freed.map(({ id }) => id)).toContain(render.id);
    expect(await reload(render)).toMatchObject({ status: 'pending', attempts: 1, dispatchedAt: null });
    await claim(render, 0);
    expect((await expireLeases(db, 100)).failed.map(({ id }) => id)).toContain(render.id);
    expect(await reload(render)).toMatchObject({ status: 'failed', attempts: 2, errorCode: 'lease_expired' });
  });

  it('is not one while heartbeats come', async () => {
    const render = await aPendingRender();
    const lease = leaseOf(await claim(render, 50));
    expect(await heartbeat(database.db, lease, 60_000)).toBe(true);
    await database.db.execute(sql`select pg_sleep(0.06)`);
    await expireLeases(database.db, 100);
    expect(await reload(render)).toMatchObject({ status: 'rendering' });
  });

  it('is ended beside one whose row somebody has locked, which is left for the next sweep', async () => {
    const [locked, free] = [await aPendingRender(), await aPendingRender()];
    for (const render of [locked, free]) await claim(render, -1);
    const freed = async () => (await expireLeases(database.db, 100)).freed.map(({ id }) => id);
    await database.db.transaction(async (tx) => {
      await tx.execute(sql`select from exercise_renders where id = ${locked.id} for update`);
      expect(await freed()).toEqual([free.id]);
    });
    expect(await freed()).toEqual([locked.id]);
  });
});

describe('history', () => {
  it('tells every move with its cause, and keeps the detail of an error out of the row', async () => {
    const { db } = database;
    const render = await aPendingRender();
    await retryRender(db, leaseOf(await claim(render)), { error, delayMs: -1 });
    await handBack(db, leaseOf(await claim(render)), { cause: 'shutdown' });
    await markUploaded(db, leaseOf(await claim(render)), artefacts, 1_000);
    await markReady(db, { id: render.id, videoGuid: 'guid-1', cause: 'webhook' });
    expect((await eventsOf(render)).map((e) => [e.fromStatus, e.toStatus, e.cause, e.attempt])).toEqual([
      [null, 'pending', 'published', 0],
      ['pending', 'rendering', 'claim', 1],
      ['rendering', 'pending', 'retry', 1],
      ['pending', 'rendering', 'claim', 2],
      ['rendering', 'pending', 'shutdown', 1],
      ['pending', 'rendering', 'claim', 2],
      ['rendering', 'transcoding', 'uploaded', 2],
      ['transcoding', 'ready', 'webhook', 2],
    ]);
    expect((await eventsOf(render))[2]?.error).toEqual(error);
    expect(JSON.stringify(await reload(render))).not.toContain('tail');
  });
});

describe('transcode', () => {
  const transcoding = async () => {
    const render = await aPendingRender();
    await markUploaded(database.db, leaseOf(await claim(render)), artefacts, 1_000);
    return reload(render);
  };

  it('ends once: later, doubled or contrary news change nothing', async () => {
    const { db } = database;
    const render = await transcoding();
    const video = { id: render.id, videoGuid: 'guid-1', cause: 'webhook' };
    expect(await markReady(db, video)).toMatchObject({ status: 'ready' });
    expect(await markReady(db, video)).toBeNull();
    expect(await markTranscodeFailed(db, { ...video, error })).toBeNull();
    expect(await markTranscodeLost(db, { ...video, error, forgetVideo: true, delayMs: 0 })).toBeNull();
    expect(await reload(render)).toMatchObject({ status: 'ready', errorCode: null });
  });

  it('of another video than the row’s is not settled', async () => {
    const render = await transcoding();
    expect(await markReady(database.db, { id: render.id, videoGuid: 'older', cause: 'webhook' })).toBeNull();
  });

  it('whose video is gone is baked again, with the dead guid forgotten', async () => {
    const render = await transcoding();
    await markTranscodeLost(database.db, {
      id: render.id,
      videoGuid: 'guid-1',
      cause: 'backstop',
      error,
      forgetVideo: true,
      delayMs: 0,
    });
    expect(await reload(render)).toMatchObject({
      status: 'pending',
      videoGuid: null,
      masterSha256: 'b'.repeat(64),
      dispatchedAt: null,
    });
    expect(await mirrorRows(database.db, 1_000).changes([render.id])).toMatchObject([{ inside: true }]);
  });
});

describe('a transcode under way', () => {
  it('is as old as its upload, however often Bunny has been asked meanwhile', async () => {
    const { db } = database;
    const render = await aPendingRender();
    await markUploaded(db, leaseOf(await claim(render)), artefacts, 1_000);
    const { transcodeStartedAt } = await reload(render);
    await postponeTranscode(db, { id: render.id, videoGuid: 'guid-1', nextMs: 60_000 });
    const later = await reload(render);
    expect(later.transcodeStartedAt).toEqual(transcodeStartedAt);
    expect(later.transcodeDeadlineAt!.getTime()).toBeGreaterThan(Date.now() + 30_000);
  });
});

describe('dead-letter', () => {
  it('tells the superadmins of a platform exercise, and only the managers of an organisation’s own', async () => {
    const { db } = database;
    const [org, other] = [await anOrganisation(db), await anOrganisation(db)];
    await db.insert(members).values([
      { orgId: org, subject: 'manager', role: 'manager' },
      { orgId: org, subject: 'specialist', role: 'specialist' },
      { orgId: other, subject: 'stranger', role: 'manager' },
      { orgId: null, subject: 'root', role: 'superadmin' },
    ]);
    const told = async (render: Render) => {
      await deadLetter(db, leaseOf(await claim(render)), error);
      const all = await db.select().from(notifications);
      return all.filter((n) => n.payload.renderId === render.id).map((n) => n.recipient);
    };
    expect(await told(await aPendingRender(org))).toEqual(['manager']);
    expect(await told(await aPendingRender())).toEqual(['root']);
  });
});

describe('the database itself', () => {
  it.each([
    [
      'ready without a manifest',
      { status: 'ready' as const, videoGuid: 'g', masterSha256: 'a'.repeat(64), readyAt: new Date() },
    ],
    ['rendering without a lease', { status: 'rendering' as const }],
    ['failed without a reason', { status: 'failed' as const }],
    ['an invented status', { status: 'done' as never }],
    ['negative attempts', { attempts: -1 }],
  ])('refuses %s', async (_, change) => {
    const render = await aPendingRender();
    await expect(
      database.db.update(exerciseRenders).set(change).where(eq(exerciseRenders.id, render.id)),
    ).rejects.toThrow();
  });
});

describe('moves', () => {
  it('do to the row what the table of moves says, in any order', async () => {
    const { db } = database;
    const video = (render: Render) => ({ id: render.id, videoGuid: render.videoGuid ?? 'none', cause: 'test' });
    const lease = (render: Render): Lease => ({ id: render.id, token: render.leaseToken ?? randomUUID() });
    const moves: Partial<Record<MoveName, (render: Render) => Promise<unknown>>> = {
      claim: (render) => claim(render),
      'hand-back': (render) => handBack(db, lease(render), { cause: 'shutdown' }),
      retry: (render) => retryRender(db, lease(render), { error, delayMs: -1 }),
      'dead-letter': (render) => deadLetter(db, lease(render), error),
      uploaded: (render) => markUploaded(db, lease(render), artefacts, 1_000),
      finished: (render) => markReady(db, video(render)),
      'transcode-failed': (render) => markTranscodeFailed(db, { ...video(render), error }),
      'transcode-lost': (render) => markTranscodeLost(db, { ...video(render), error, forgetVideo: true, delayMs: -1 }),
    };
    const names = Object.keys(moves) as MoveName[];
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...names, 'requeue' as const), { maxLength: 14 }), async (sequence) => {
        const render = await aPendingRender();
        let expected: RenderLife = render;
        for (const name of sequence) {
          const row = await reload(render);
          if (name === 'requeue')
            await requeueRenders(db, sql`r.id = ${render.id}`, { from: 'failed', cause: 'test', forgetVideo: true });
          else await moves[name]?.(row);
          // Only what failed is requeued by a publish; a ready render needs a deliberate re-bake.
          if (!(name === 'requeue' && expected.status === 'ready')) expected = applyMove(expected, name) ?? expected;
          const { status, generation, attempts, leaseToken } = await reload(render);
          expect({ status, generation, attempts }).toEqual({
            status: expected.status,
            generation: expected.generation,
            attempts: expected.attempts,
          });
          expect(leaseToken !== null).toBe(status === 'rendering');
        }
      }),
      { numRuns: 25 },
    );
  });
});
