import { eq, inArray } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { publishProgram } from '../../../lib/db/publish.ts';
import { exerciseRenders, programs, renderEvents, sessionItems, sessions } from '../../../lib/db/schema/index.ts';
import { AppError } from '../../../lib/errors.ts';
import { aClip, anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();

const publish = (programId: string, orgId: string | null = null, by = 'specialist-1') =>
  publishProgram(database.db, { programId, orgId, by });

const rendersOf = async (exerciseId: string) =>
  database.db.select().from(exerciseRenders).where(eq(exerciseRenders.exerciseId, exerciseId));

const failing = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AppError);
  return error as AppError;
};

describe('publish', () => {
  it('makes one pending render per different recipe and links every item to its own', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const [squat, lunge] = [await anExercise(db, { orgId }), await anExercise(db)];
    const programId = await aProgram(db, orgId, [
      [{ exerciseId: squat.id }, { exerciseId: lunge.id, dose: { reps: 5 } }],
      [{ exerciseId: squat.id }, { exerciseId: lunge.id, dose: { reps: 6 } }],
    ]);

    const { counts, queued } = await publish(programId, orgId);

    expect(counts).toEqual({ total: 3, ready: 0, queued: 3, inProgress: 0, failed: 0 });
    expect(queued).toHaveLength(3);
    const items = await db
      .select()
      .from(sessionItems)
      .innerJoin(sessions, eq(sessions.id, sessionItems.sessionId))
      .where(eq(sessions.programId, programId));
    expect(items.every((row) => row.session_items.renderId !== null && row.sessions.status === 'published')).toBe(true);
    expect(new Set(items.map((row) => row.session_items.renderId)).size).toBe(3);
    const [program] = await db.select().from(programs).where(eq(programs.id, programId));
    expect(program).toMatchObject({ status: 'published', publishedBy: 'specialist-1' });
    for (const render of queued) {
      const events = await db.select().from(renderEvents).where(eq(renderEvents.renderId, render.id));
      expect(events).toMatchObject([{ fromStatus: null, toStatus: 'pending', cause: 'published', generation: 0 }]);
    }
  });

  it('leaves one row per recipe however many publish it at once, without deadlock', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const all = await Promise.all(Array.from({ length: 6 }, () => anExercise(db)));
    const plans = Array.from({ length: 8 }, (_, n) =>
      [...all.slice(n % 6), ...all.slice(0, n % 6)].map(({ id }) => ({ exerciseId: id })),
    );
    const programIds = await Promise.all(plans.map((items) => aProgram(db, orgId, [items])));

    const published = await Promise.all(programIds.map((id) => publish(id, orgId)));

    expect(published.flatMap(({ queued }) => queued)).toHaveLength(6);
    for (const { counts } of published) expect(counts).toMatchObject({ total: 6, queued: 6 });
    for (const { id } of all) expect(await rendersOf(id)).toHaveLength(1);
  });

  it('requeues each failed render once however many publishes need it at once, without deadlock', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const all = await Promise.all(Array.from({ length: 20 }, () => anExercise(db)));
    const plan = (from: number) => [[...all.slice(from), ...all.slice(0, from)].map(({ id }) => ({ exerciseId: id }))];
    await publish(await aProgram(db, orgId, plan(0)), orgId);
    const ids = all.map(({ id }) => id);
    await db
      .update(exerciseRenders)
      .set({ status: 'failed', errorCode: 'ffmpeg_failed', videoGuid: 'truncated' })
      .where(inArray(exerciseRenders.exerciseId, ids));
    const programIds = await Promise.all(Array.from({ length: 8 }, (_, n) => aProgram(db, orgId, plan(n))));

    const published = await Promise.all(programIds.map((id) => publish(id, orgId)));

    expect(published.flatMap(({ queued }) => queued)).toHaveLength(20);
    const renders = await db.select().from(exerciseRenders).where(inArray(exerciseRenders.exerciseId, ids));
    for (const render of renders) expect(render).toMatchObject({ status: 'pending', generation: 1, videoGuid: null });
  });

  it('of one programme twice at once makes nothing twice', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const { id } = await anExercise(db, { orgId });
    const programId = await aProgram(db, orgId, [[{ exerciseId: id }]]);
    const both = await Promise.all([publish(programId, orgId), publish(programId, orgId)]);
    expect(both.map(({ queued }) => queued.length).sort()).toEqual([0, 1]);
    expect(both.map(({ counts }) => counts.total)).toEqual([1, 1]);
    expect(await rendersOf(id)).toHaveLength(1);
  });

  it('requeues what failed as a new generation and leaves ready and running renders alone', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const [bad, good] = [await anExercise(db), await anExercise(db)];
    const plan = [[{ exerciseId: bad.id }, { exerciseId: good.id }]];
    await publish(await aProgram(db, orgId, plan), orgId);
    await db
      .update(exerciseRenders)
      .set({ status: 'failed', errorCode: 'ffmpeg_failed', attempts: 5 })
      .where(eq(exerciseRenders.exerciseId, bad.id));
    await db
      .update(exerciseRenders)
      .set({
        status: 'ready',
        manifestUrl: 'https://cdn/manifest.json',
        videoGuid: 'guid',
        masterSha256: 'a'.repeat(64),
        readyAt: new Date(),
      })
      .where(eq(exerciseRenders.exerciseId, good.id));

    const { counts, queued } = await publish(await aProgram(db, orgId, plan), orgId);

    expect(counts).toEqual({ total: 2, ready: 1, queued: 1, inProgress: 0, failed: 0 });
    expect(queued).toMatchObject([{ generation: 1 }]);
    expect(await rendersOf(bad.id)).toMatchObject([{ status: 'pending', generation: 1, attempts: 0, errorCode: null }]);
    expect(await rendersOf(good.id)).toMatchObject([{ status: 'ready', generation: 0 }]);
  });

  it('counts each of its renders once, by its state, and publishing again counts the same', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const { id: exerciseId } = await anExercise(db);
    const items = (...reps: number[]) => reps.map((count) => ({ exerciseId, dose: { reps: count } }));
    const { queued } = await publish(await aProgram(db, orgId, [items(1, 2, 3, 4, 5)]), orgId);
    const set = (nth: number, state: Partial<typeof exerciseRenders.$inferInsert>) =>
      db
        .update(exerciseRenders)
        .set(state)
        .where(eq(exerciseRenders.id, queued[nth]?.id ?? ''));
    const video = { videoGuid: 'guid', masterSha256: 'a'.repeat(64) };
    await set(0, { status: 'ready', ...video, manifestUrl: 'https://cdn/manifest.json', readyAt: new Date() });
    await set(1, { status: 'transcoding', ...video, transcodeDeadlineAt: new Date() });
    await set(2, { status: 'rendering', leaseToken: exerciseId, leaseExpiresAt: new Date() });

    const programId = await aProgram(db, orgId, [items(1, 2, 3, 4, 5, 6), items(1, 2, 3, 4, 5, 6)]);
    const expected = { total: 6, ready: 1, queued: 3, inProgress: 2, failed: 0 };
    expect((await publish(programId, orgId)).counts).toEqual(expected);
    expect((await publish(programId, orgId)).counts).toEqual(expected);
  });

  it('refuses the whole programme, item by item, and changes nothing where an exercise cannot be baked', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const [fine, without, long] = [
      await anExercise(db),
      await anExercise(db, { durationMs: null }),
      await anExercise(db, { durationMs: 61_000 }),
    ];
    const programId = await aProgram(db, orgId, [
      [{ exerciseId: fine.id }, { exerciseId: without.id }],
      [{ exerciseId: long.id }],
    ]);

    const error = await failing(publish(programId, orgId));

    expect(error.code).toBe('not_publishable');
    expect(error.issues).toMatchObject([
      { path: 'Session 1, item 2', code: 'source_missing' },
      { path: 'Session 2, item 1', code: 'source_too_long' },
    ]);
    expect(await rendersOf(fine.id)).toEqual([]);
    expect(await db.select().from(programs).where(eq(programs.id, programId))).toMatchObject([{ status: 'draft' }]);
  });

  it('refuses an empty programme and one that would last longer than an hour', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const { id } = await anExercise(db);
    expect((await failing(publish(await aProgram(db, orgId, []), orgId))).code).toBe('not_publishable');
    const endless = await aProgram(db, orgId, [
      [{ exerciseId: id, dose: { sets: 20, reps: 100, tempo: { out: 10, hold: 0, back: 10, pause: 0 } } }],
    ]);
    expect((await failing(publish(endless, orgId))).issues).toMatchObject([{ code: 'recipe_too_long' }]);
  });

  it('does not tell a programme of another organisation from one that does not exist', async () => {
    const { db } = database;
    const [mine, theirs] = [await anOrganisation(db), await anOrganisation(db)];
    const programId = await aProgram(db, theirs, [[{ exerciseId: (await anExercise(db)).id }]]);
    expect((await failing(publish(programId, mine))).code).toBe('not_found');
    expect((await failing(publish('0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0fff', mine))).code).toBe('not_found');
  });

  it('takes the clips of the language, else those of its base language', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const { id } = await anExercise(db);
    await aClip(db, id, 'de', 'start');
    const done = await aClip(db, id, 'de', 'done');
    const start = await aClip(db, id, 'de-AT', 'start');
    await aClip(db, id, 'en', 'start');
    await publish(await aProgram(db, orgId, [[{ exerciseId: id }]], { language: 'de-AT' }), orgId);
    const [render] = await rendersOf(id);
    expect(render?.recipe.clips).toEqual({ start, done });
  });

  it('places one specialist’s single render before the rest of another’s batch', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const batch = await Promise.all(Array.from({ length: 5 }, () => anExercise(db)));
    const single = await anExercise(db);
    const big = await publish(await aProgram(db, orgId, [batch.map(({ id }) => ({ exerciseId: id }))]), orgId, 'busy');
    const small = await publish(await aProgram(db, orgId, [[{ exerciseId: single.id }]]), orgId, 'quiet');
    const tagsOf = async ({ queued }: typeof big) => {
      const ids = queued.map(({ id }) => id);
      const renders = await db.select().from(exerciseRenders).where(inArray(exerciseRenders.id, ids));
      return renders.map(({ fairTag }) => fairTag).sort((a, b) => a - b);
    };
    expect((await tagsOf(small))[0]).toBeLessThan((await tagsOf(big))[1] as number);
  });

  it('needs the same number of statements for one item as for a hundred', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const count = async (items: number) => {
      const made = await Promise.all(Array.from({ length: items }, () => anExercise(db)));
      const programId = await aProgram(db, orgId, [made.map(({ id }) => ({ exerciseId: id }))]);
      return database.countStatements(() => publish(programId, orgId));
    };
    await count(1);
    const [one, hundred] = [await count(1), await count(100)];
    expect(one).toBeGreaterThan(5);
    expect(hundred).toBe(one);
  });
});
