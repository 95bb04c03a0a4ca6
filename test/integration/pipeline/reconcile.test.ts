import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { rebakeReady } from '../../../lib/db/reconcile.ts';
import { renderEvents } from '../../../lib/db/schema/index.ts';
import { createFleet, type Inventory } from '../../../lib/media/fleet.ts';
import { shaOf } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { MEDIA_TOKEN } from '../media/harness.ts';
import { type BakedOnce, bakedOnce, ready, reconcileFixture, rendering, transcoding } from './reconcile-fixture.ts';

const database = useTestDatabase();
let baked: BakedOnce;
const { sim, title, reset, emptyVideo, video, row, render, run, snapshot, masterPath } = reconcileFixture(
  database,
  () => baked,
);

beforeAll(async () => {
  baked = await bakedOnce();
});
afterAll(() => baked.media.close());
beforeEach(reset);

const manifest = () => `${baked.dir}/manifest.json`;
const exists = async (guid: string) =>
  sim()
    .stream.get(guid)
    .then(
      () => true,
      () => false,
    );
const leased = () => ({ ...rendering, leaseExpiresAt: new Date(Date.now() + 60_000) });
const garbage = Buffer.from('no video at all');
const old = () => new Promise((resolve) => setTimeout(resolve, 15));

describe('a ready render', () => {
  it('whose video has finished and whose files are there is left alone', async () => {
    const id = await row({ ...ready, videoGuid: await video() });
    const before = await snapshot();
    const { counts, report } = await run();
    expect(counts).toEqual({});
    expect(report).toMatchObject({ complete: true, seen: { renders: 1, videos: 1, stored: 1 } });
    expect(await snapshot()).toEqual(before);
    expect((await render(id)).generation).toBe(0);
  });

  it.each([
    ['is gone', async () => '0b0e0d0c-0000-4000-8000-000000000000'],
    ['has failed', () => video({ bytes: garbage })],
    ['has no bytes', () => emptyVideo()],
  ])('whose video %s is made anew with another video', async (_, guid) => {
    const id = await row({ ...ready, videoGuid: await guid() });
    const { counts } = await run({ graceMs: 3_600_000 });
    expect(counts).toMatchObject({ 'new-video': 1 });
    expect(await render(id)).toMatchObject({
      status: 'pending',
      generation: 1,
      attempts: 0,
      videoGuid: null,
      readyAt: null,
    });
    expect(await database.db.select().from(renderEvents)).toMatchObject([{ cause: 'reconcile', fromStatus: 'ready' }]);
    // Nothing is done twice.
    expect((await run({ graceMs: 3_600_000 })).counts).not.toHaveProperty('new-video');
  });

  it('is not taken for lost because a list does not show its video', async () => {
    const guid = await video();
    await row({ ...ready, videoGuid: guid });
    await sim().faults({ eventualListing: 3_600_000 });
    const { counts, report } = await run();
    expect([counts, report.seen.videos]).toEqual([{}, 0]);
  });

  it.each([
    ['is missing', undefined],
    ['is cut off', (text: string) => text.slice(0, -10)],
    ['names another master', (text: string) => text.replaceAll(baked.done.masterSha256, shaOf('x'))],
  ])('whose manifest %s gets it back, byte for byte, and stays ready', async (_, change) => {
    const id = await row({ ...ready, videoGuid: await video() });
    const whole = String(baked.files.get(manifest()));
    if (change) await sim().storage.put(manifest(), Buffer.from(change(whole)));
    else await sim().storage.delete(manifest());
    expect((await run()).counts).toEqual({ manifest: 1 });
    expect(String(await baked.media.stored(baked.done.manifestUrl))).toBe(whole);
    expect(await render(id)).toMatchObject({ status: 'ready', generation: 0 });
    expect((await run()).counts).toEqual({});
  });

  it.each([
    ['the poster', () => new URL(baked.done.posterUrl).pathname.slice(1)],
    ['the master', masterPath],
  ])('that has lost %s is baked again and keeps its video', async (_, path) => {
    const guid = await video();
    const id = await row({ ...ready, videoGuid: guid });
    await sim().storage.delete(path());
    const { counts, actions } = await run();
    expect(counts).toEqual({ rebake: 1 });
    expect(actions[0]?.detail).toContain(path().split('/').at(-1));
    expect(await render(id)).toMatchObject({ status: 'pending', generation: 1, videoGuid: guid });
    expect(await exists(guid)).toBe(true);
  });

  it('is left where storage cannot be asked, and counted as not examined', async () => {
    const id = await row({ ...ready, videoGuid: await video() });
    await sim().storage.delete(manifest());
    await sim().faults({ rate5xx: { rate: 1, match: baked.request.recipeHash } });
    expect((await run()).counts).toEqual({ 'no artefacts': 1 });
    expect((await render(id)).status).toBe('ready');
  });

  it('is one of at most so many that a run bakes again: more look like another library', async () => {
    const gone = ['a', 'b', 'c'].map((letter) => `${letter}0000000-0000-4000-8000-000000000000`);
    for (const videoGuid of gone) await row({ ...ready, videoGuid });
    const config = { RECONCILE_MAX_REBAKES: '2' };
    const changed: string[] = [];
    const onChanged = (ids: readonly string[]) => void changed.push(...ids);
    expect((await run({ config, dryRun: true, onChanged })).counts).toEqual({ 'new-video': 2, 'left rebake-limit': 1 });
    expect(changed).toEqual([]);
    expect((await run({ config, onChanged })).counts).toEqual({ 'new-video': 2, 'left rebake-limit': 1 });
    expect(changed).toHaveLength(2);
    expect((await run({ config })).counts).toEqual({ 'new-video': 1 });
  });

  it('that has moved on since it was examined is not touched', async () => {
    const id = await row({ ...ready, videoGuid: await video() });
    const examined = await render(id);
    expect(await rebakeReady(database.db, [{ ...examined, generation: 7 }], { forgetVideo: true })).toEqual(new Set());
    expect(await rebakeReady(database.db, [{ ...examined, videoGuid: 'other' }], { forgetVideo: true })).toEqual(
      new Set(),
    );
    expect(await render(id)).toEqual(examined);
    expect(await rebakeReady(database.db, [examined], { forgetVideo: false })).toEqual(new Set([id]));
    expect(await rebakeReady(database.db, [examined], { forgetVideo: false })).toEqual(new Set());
  });
});

describe('a transcoding render', () => {
  it('is ready where Bunny has finished, and failed where Bunny has failed', async () => {
    const good = await row({ ...transcoding(), videoGuid: await video() });
    const bad = await row({ ...transcoding(), videoGuid: await video({ bytes: garbage }) });
    expect((await run()).counts).toEqual({ ready: 1, failed: 1 });
    expect((await render(good)).status).toBe('ready');
    expect(await render(bad)).toMatchObject({ status: 'failed', errorCode: 'transcode_failed' });
  });

  it('fails where Bunny "finished" only a part of it', async () => {
    await sim().faults({ truncatedFinish: true });
    const id = await row({ ...transcoding(), videoGuid: await video() });
    expect((await run()).counts).toEqual({ failed: 1 });
    expect(await render(id)).toMatchObject({ status: 'failed', errorCode: 'transcode_truncated' });
  });

  it('whose video is gone is baked again, or failed where no attempt is left, as the backstop has it', async () => {
    const again = await row({ ...transcoding(), videoGuid: 'gone-1' });
    const spent = await row({ ...transcoding(), videoGuid: 'gone-2', attempts: 5 });
    expect((await run()).counts).toEqual({ lost: 2 });
    expect(await render(again)).toMatchObject({ status: 'pending', generation: 0, attempts: 1, videoGuid: null });
    expect(await render(spent)).toMatchObject({ status: 'failed', errorCode: 'transcode_missing' });
  });

  it('whose video has no bytes is uploaded again into the same video, unless its upload has only just ended', async () => {
    const guid = await emptyVideo();
    const id = await row({ ...transcoding(0), videoGuid: guid });
    expect((await run()).counts).toEqual({ 'left just-uploaded': 1 });
    const older = await emptyVideo();
    const other = await row({ ...transcoding(), videoGuid: older });
    expect((await run()).counts).toEqual({ 'left just-uploaded': 1, lost: 1 });
    expect((await render(id)).status).toBe('transcoding');
    expect(await render(other)).toMatchObject({ status: 'pending', videoGuid: older });
  });

  it('waits on where Bunny is at work, and is given up where that has lasted too long', async () => {
    await sim().faults({ stuckTranscode: true });
    const guid = await emptyVideo();
    await sim().stream.upload(guid, baked.files.get(masterPath())!);
    const id = await row({ ...transcoding(), videoGuid: guid });
    expect((await run()).counts).toEqual({ 'left in-flight': 1 });
    const config = { TRANSCODE_GIVE_UP_MS: '1000' };
    expect((await run({ config, dryRun: true })).counts).toEqual({ lost: 1 });
    expect((await run({ config, graceMs: 3_600_000 })).counts).toMatchObject({ lost: 1 });
    expect(await render(id)).toMatchObject({ status: 'pending', errorCode: 'transcode_stuck', videoGuid: null });
  });
});

describe('a collection that was not noted', () => {
  it('is restored from Bunny, on every render but a claimed one', async () => {
    const collectionId = (await sim().stream.createCollection('squats')).guid;
    const made = {
      ready: await row({ ...ready, videoGuid: await video({ collectionId }) }),
      pending: await row({ status: 'pending', videoGuid: await video({ collectionId }) }),
      failed: await row({ status: 'failed', errorCode: 'internal', videoGuid: await video({ collectionId }) }),
      claimed: await row({ ...leased(), videoGuid: await video({ collectionId }) }),
      noted: await row({ ...ready, videoGuid: await video({ collectionId }), videoCollectionId: 'another' }),
    };
    expect((await run({ dryRun: true })).counts).toEqual({ collection: 3 });
    expect((await run()).counts).toEqual({ collection: 3 });
    const noted = async (id: string) => (await render(id)).videoCollectionId;
    expect(await Promise.all([made.ready, made.pending, made.failed].map(noted))).toEqual(Array(3).fill(collectionId));
    expect([await noted(made.claimed), await noted(made.noted)]).toEqual([null, 'another']);
    expect((await run()).counts).toEqual({});
  });
});

describe('a waiting or claimed render', () => {
  it('whose video is gone is left for its next attempt', async () => {
    const waiting = await row({ status: 'pending', videoGuid: 'gone-1' });
    const claimed = await row({ ...leased(), videoGuid: 'gone-2' });
    const before = [await render(waiting), await render(claimed)];
    expect((await run()).counts).toEqual({ 'left attempt-to-come': 2 });
    expect([await render(waiting), await render(claimed)]).toEqual(before);
  });
});

describe('a video without a render', () => {
  it('is deleted where it is ours and older than the grace period, and a foreign one never', async () => {
    const known = await video();
    await row({ ...ready, videoGuid: known });
    const orphans = [await video(), await emptyVideo(title(shaOf('nobody'))), await video({ bytes: garbage })];
    const foreign = ['Holiday', `bakehouse staging ${'a'.repeat(32)}`, 'bakehouse'];
    const strangers = await Promise.all(foreign.map((name) => emptyVideo(name)));
    await old();
    expect((await run({ graceMs: 3_600_000 })).counts).toEqual({ 'left within-grace': 3, 'left foreign-video': 3 });
    const { counts, actions } = await run({ graceMs: 10 });
    expect(counts).toEqual({ delete: 3, 'left foreign-video': 3 });
    expect(actions.map(({ videoGuid }) => videoGuid).sort()).toEqual([...orphans].sort());
    for (const guid of orphans) expect(await exists(guid)).toBe(false);
    for (const guid of [known, ...strangers]) expect(await exists(guid)).toBe(true);
  });

  it('is as old as Bunny says in UTC, wherever this process is', async () => {
    const zone = process.env.TZ;
    await emptyVideo();
    try {
      for (process.env.TZ of ['Asia/Tokyo', 'America/Los_Angeles']) {
        expect((await run({ graceMs: 3_600_000 })).counts).toMatchObject({ 'left within-grace': 1 });
      }
      await old();
      expect((await run({ graceMs: 10, dryRun: true })).counts).toMatchObject({ delete: 1 });
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });

  it('is left while its hash is being baked, whose worker may be about to tell of it', async () => {
    const guid = await emptyVideo();
    const id = await row({ ...leased(), videoGuid: null, masterSha256: null });
    expect((await run()).counts).toEqual({ 'left leased': 1 });
    expect((await run({ dryRun: true })).counts).toEqual({ 'left leased': 1 });
    await database.db.execute(`update exercise_renders set status = 'pending', lease_token = null where id = '${id}'`);
    expect((await run()).counts).toEqual({ delete: 1 });
    expect(await exists(guid)).toBe(false);
  });

  it('is not deleted while a render comes to name it between the list and the deletion', async () => {
    const guid = await emptyVideo();
    const fleet = createFleet({ targets: [baked.media.url], token: MEDIA_TOKEN });
    const ids: string[] = [];
    const listVideos: Inventory['listVideos'] = async (...asked) => {
      const page = await fleet.listVideos(...asked);
      ids.push(await row({ status: 'pending', videoGuid: guid }));
      return page;
    };
    expect((await run({ media: { listVideos } })).counts).not.toHaveProperty('delete');
    expect(await exists(guid)).toBe(true);
    expect((await render(ids[0]!)).videoGuid).toBe(guid);
  });

  it('is kept with all others where they are many: it may be another database', async () => {
    const guids = [
      await emptyVideo(),
      await emptyVideo(title(shaOf('second'))),
      await emptyVideo(title(shaOf('third'))),
    ];
    const config = { RECONCILE_MAX_DELETIONS: '2' };
    expect((await run({ config })).counts).toMatchObject({ 'left deletion-limit': 3 });
    expect((await run({ config })).counts).not.toHaveProperty('delete');
    expect(await Promise.all(guids.map(exists))).toEqual([true, true, true]);
    expect((await run({ config: { RECONCILE_MAX_DELETIONS: '3' } })).counts).toMatchObject({ delete: 3 });
  });

  it('is kept with all others where they are most of ours, until somebody who has looked says how many', async () => {
    for (let at = 0; at < 4; at++) await row({ ...ready, videoGuid: await emptyVideo(title(shaOf(`known ${at}`))) });
    for (let at = 0; at < 6; at++) await emptyVideo(title(shaOf(`orphan ${at}`)));
    for (let at = 0; at < 9; at++) await emptyVideo(`Holiday ${at}`);
    const deletion = async (options: Parameters<typeof run>[0]) => {
      const { counts } = await run({ dryRun: true, ...options });
      return { deleted: counts.delete, kept: counts['left deletion-limit'] };
    };
    expect(await deletion({})).toEqual({ deleted: undefined, kept: 6 });
    expect(await deletion({ maxDeletions: 5 })).toEqual({ deleted: undefined, kept: 6 });
    expect(await deletion({ maxDeletions: 6 })).toEqual({ deleted: 6, kept: undefined });
  });

  it('is found on every page, though the deletions before it move the pages', async () => {
    const kept = await Promise.all(Array.from({ length: 7 }, (_, at) => emptyVideo(`Holiday ${at}`)));
    for (let at = 0; at < 33; at++) await emptyVideo(title(shaOf(`orphan ${at}`)));
    kept.push(...(await Promise.all(Array.from({ length: 7 }, (_, at) => emptyVideo(`Garden ${at}`)))));
    const { counts, report } = await run({ videosPerPage: 10, maxDeletions: 33 });
    expect(counts).toMatchObject({ delete: 33, 'left foreign-video': 14 });
    expect(report.seen.videos).toBe(47);
    expect(
      (await sim().stream.listPage({ number: 1, itemsPerPage: 1000 })).items.map(({ guid }) => guid).sort(),
    ).toEqual(kept.sort());
  });

  it('counts once, though a video made meanwhile moves it to the next page', async () => {
    for (let at = 0; at < 25; at++) await emptyVideo(`Holiday ${at}`);
    const pages: string[] = [];
    const listVideos: Inventory['listVideos'] = async (asked, signal) => {
      const page = await baked.media.client.listVideos(asked, signal);
      pages.push(...page.videos.map(({ guid }) => guid));
      for (let at = 0; at < 3; at++) if (asked.page < 3) await emptyVideo(`new ${asked.page} ${at}`);
      return page;
    };
    const { report } = await run({ dryRun: true, videosPerPage: 10, media: { listVideos } });
    expect(pages.length).toBeGreaterThan(new Set(pages).size);
    expect(report.seen.videos).toBe(new Set(pages).size);
  });
});

describe('a stored render that no row knows', () => {
  it('is counted and left', async () => {
    await sim().storage.put(`renders/${shaOf('nobody')}/manifest.json`, Buffer.from('{}'));
    const { counts, report } = await run();
    expect(counts).toEqual({ 'left stored-without-render': 2 });
    expect(report.seen.stored).toBe(2);
    expect(await sim().storage.list(`renders/${shaOf('nobody')}`)).toHaveLength(1);
  });
});

describe('a dry run', () => {
  it('plans what a run then does, and changes nothing: no row, no video, no file', async () => {
    const collectionId = (await sim().stream.createCollection('squats')).guid;
    await row({ ...ready, videoGuid: 'gone-1' });
    await row({ ...ready, videoGuid: await video({ collectionId }) });
    await row({ ...transcoding(), videoGuid: await video() });
    await row({ ...transcoding(), videoGuid: await video({ bytes: garbage }) });
    await row({ ...transcoding(), videoGuid: 'gone-2' });
    await row({ ...leased(), videoGuid: 'gone-3', recipeHash: shaOf('other') });
    const lacksPoster = shaOf('lacks its poster');
    await row({ ...ready, videoGuid: await video(), recipeHash: lacksPoster, posterUrl: null });
    await sim().storage.delete(manifest());
    await emptyVideo(title(shaOf('nobody')));
    await emptyVideo('Holiday');
    const before = await snapshot();
    const plan = await run({ dryRun: true });
    expect(plan.counts).toEqual({
      ...{ 'new-video': 1, manifest: 1, ready: 1, failed: 1, lost: 1, rebake: 1, collection: 1, delete: 1 },
      ...{ 'left attempt-to-come': 1, 'left foreign-video': 1 },
    });
    expect(await snapshot()).toEqual(before);
    const done = await run();
    expect(done.counts).toEqual(plan.counts);
    expect(done.actions).toEqual(plan.actions);
  });
});

describe('a run', () => {
  it('needs a constant number of statements for a page of renders, however many there are', async () => {
    const guid = await video();
    const statements = async () => database.countStatements(() => run({ dryRun: true }));
    for (let at = 0; at < 5; at++) await row({ ...ready, videoGuid: guid });
    const few = await statements();
    for (let at = 0; at < 40; at++) await row({ ...ready, videoGuid: guid });
    expect(await statements()).toBe(few);
  });

  it('that meets nobody says so and leaves everything as it was', async () => {
    await row({ ...ready, videoGuid: await video() });
    await row({ ...transcoding(), videoGuid: 'gone' });
    const before = await snapshot();
    const { report, counts } = await run({ url: 'http://127.0.0.1:9' });
    expect(report.complete).toBe(false);
    expect(counts).toEqual({ 'no video': 2, 'no video-list': 1, 'no storage-list': 1 });
    expect(await snapshot()).toEqual(before);
  });

  it('that is told to stop ends soon and says that it is not complete', async () => {
    await row({ ...ready, videoGuid: 'gone' });
    const before = await snapshot();
    const { report } = await run({ signal: AbortSignal.abort() });
    expect(report).toMatchObject({ complete: false, seen: { renders: 0, videos: 0, stored: 0 } });
    expect(await snapshot()).toEqual(before);
  });
});
