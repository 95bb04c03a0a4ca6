import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import { createVideo, uploadVideo } from '../../../lib/bunny/video-upload.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { ask, type RunningSim, startSim } from './harness.ts';

const ALREADY = { success: false, message: 'The requested video was already uploaded', statusCode: 400 };
let sim: RunningSim;
let clip: string;

beforeAll(async () => {
  sim = await startSim();
  clip = await makeClip(await makeTempDir());
});
afterAll(() => sim.close());
beforeEach(async () => {
  await fetch(`${sim.streamUrl}/sim/faults`, { method: 'DELETE' });
});

describe('keys', () => {
  it('answers a wrong key with 401 in PascalCase, and so a right key for another library', async () => {
    const answer = await ask(sim, 'GET', '/videos', undefined, 'nonsense');
    expect(answer.status).toBe(401);
    expect(await answer.json()).toEqual({
      Success: false,
      Message: 'Authentication has been denied for this request.',
      StatusCode: 401,
    });
    const headers = { AccessKey: SIM_DEFAULTS.streamKey };
    expect((await fetch(`${sim.streamUrl}/library/999/videos`, { headers })).status).toBe(401);
    expect((await ask(sim, 'GET', '/videos', undefined, SIM_DEFAULTS.storageKey)).status).toBe(401);
  });

  it('lets the read-only key read, and nothing else', async () => {
    const { guid } = await sim.stream.create({ title: 'read only' });
    const key = SIM_DEFAULTS.readOnlyKey;
    expect((await ask(sim, 'GET', `/videos/${guid}`, undefined, key)).status).toBe(200);
    for (const [method, path] of [
      ['POST', '/videos'],
      ['PUT', `/videos/${guid}`],
      ['POST', `/videos/${guid}`],
      ['DELETE', `/videos/${guid}`],
      ['POST', `/videos/${guid}/reencode`],
      ['POST', '/collections'],
    ] as const) {
      const answer = await ask(sim, method, path, {}, key);
      expect(answer.status, `${method} ${path}`).toBe(403);
      expect(await answer.json()).toMatchObject({ success: false, statusCode: 403 });
    }
    expect((await sim.stream.get(guid)).status).toBe(0);
  });

  it('answers HEAD with 405', async () => {
    expect((await ask(sim, 'HEAD', '/videos')).status).toBe(405);
  });
});

describe('videos', () => {
  it('are created with a zoned seven-decimal date, and shown with none', async () => {
    const created = (await (await ask(sim, 'POST', '/videos', { title: 'dates' })).json()) as Record<string, string>;
    expect(created.dateUploaded).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    const shown = (await (await ask(sim, 'GET', `/videos/${created.guid}`)).json()) as Record<string, string>;
    expect(shown.dateUploaded).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$/);
    expect(shown).toMatchObject({ status: 0, collectionId: '', videoLibraryId: SIM_DEFAULTS.libraryId });
  });

  it('need a title of 1 to 255 characters', async () => {
    for (const body of [{}, { title: '' }, { title: 'x'.repeat(256) }, { title: 5 }, 'text']) {
      const answer = await ask(sim, 'POST', '/videos', body);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ success: false, statusCode: 400 });
    }
  });

  it('go from created to finished, with the facts of the file', async () => {
    const { guid } = await sim.stream.create({ title: 'whole life' });
    await sim.stream.upload(guid, clip);
    const ended = await sim.ended(guid);
    const sha256 = createHash('sha256')
      .update(await readFile(clip))
      .digest('hex');
    expect(ended).toMatchObject({
      state: 'finished',
      lengthSeconds: 2,
      width: 320,
      height: 180,
      originalSha256: sha256,
    });
    expect(ended.availableResolutions).toEqual(['180p']);
    expect((await sim.stream.get(guid)).originalHash).toBe(sha256.toUpperCase());
    expect(await sim.stream.resolutions(guid)).toEqual({
      hls: ['180p'],
      mp4: [{ resolution: '180p', path: 'play_180p.mp4' }],
    });
    await waitFor(async () => (await sim.state(guid)).storageBytes > 0, { label: 'the storage size' });
  });

  it('fail on bytes that are no video, and on none', async () => {
    for (const bytes of [Buffer.alloc(2000, 7), Buffer.alloc(0)]) {
      const { guid } = await sim.stream.create({ title: 'garbage' });
      await sim.stream.upload(guid, bytes);
      const ended = await sim.ended(guid);
      expect(ended).toMatchObject({ state: 'failed', status: 'Error' });
      expect(ended.messages).toEqual([expect.objectContaining({ level: 'error', code: 'OriginalCorrupted' })]);
      expect(await uploadVideo(sim.stream, guid, clip)).toMatchObject({ outcome: 'new-video-needed' });
    }
  });

  it('take their bytes once', async () => {
    const { guid } = await sim.stream.create({ title: 'twice' });
    await sim.stream.upload(guid, clip);
    const again = await ask(sim, 'PUT', `/videos/${guid}`, 'more');
    expect(again.status).toBe(400);
    expect(await again.json()).toEqual(ALREADY);
    expect(await uploadVideo(sim.stream, guid, clip)).toMatchObject({ outcome: 'already-uploaded' });
  });

  it('stay empty when the upload breaks, and can then be uploaded', async () => {
    const { guid } = await sim.stream.create({ title: 'broken' });
    await new Promise<void>((resolve) => {
      const put = request(`${sim.streamUrl}/library/${SIM_DEFAULTS.libraryId}/videos/${guid}`, {
        method: 'PUT',
        headers: { AccessKey: SIM_DEFAULTS.streamKey, 'Content-Length': 1_000_000 },
      });
      put.on('error', () => resolve());
      put.write(Buffer.alloc(100_000), () => put.destroy(new Error('cut')));
    });
    await waitFor(async () => (await sim.log()).requests.find((r) => r.method === 'PUT' && r.path.includes(guid)), {
      label: 'the end of the broken upload',
    });
    expect((await sim.state(guid)).state).toBe('created');
    expect(await uploadVideo(sim.stream, guid, clip)).toEqual({ outcome: 'uploaded' });
    expect((await sim.ended(guid)).state).toBe('finished');
  });

  it('keep the first whole upload where two race', async () => {
    const { guid } = await sim.stream.create({ title: 'race' });
    const results = await Promise.allSettled([sim.stream.upload(guid, clip), sim.stream.upload(guid, clip)]);
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toEqual([expect.objectContaining({ reason: expect.objectContaining({ code: 'bunny_refused' }) })]);
    expect((await sim.ended(guid)).state).toBe('finished');
  });

  it('are gone once deleted: 404 without a body to GET, with one to the rest', async () => {
    const { guid } = await sim.stream.create({ title: 'deleted' });
    await sim.stream.upload(guid, clip);
    await sim.ended(guid);
    expect((await fetch(`${sim.cdnUrl}/${guid}/playlist.m3u8`)).status).toBe(200);
    expect(await sim.stream.delete(guid)).toBe(true);
    expect(await sim.stream.delete(guid)).toBe(false);
    const shown = await ask(sim, 'GET', `/videos/${guid}`);
    expect([shown.status, await shown.text()]).toEqual([404, '']);
    for (const method of ['DELETE', 'PUT', 'POST']) {
      const answer = await ask(sim, method, `/videos/${guid}`, {});
      expect([answer.status, await answer.json()]).toEqual([404, expect.objectContaining({ success: false })]);
    }
    expect((await fetch(`${sim.cdnUrl}/${guid}/playlist.m3u8`)).status).toBe(404);
  });

  it('are transcoded again from the kept original, and not where there is none', async () => {
    const { guid } = await sim.stream.create({ title: 'reencode' });
    await expect(sim.stream.reencode(guid)).rejects.toMatchObject({ code: 'bunny_refused' });
    await sim.stream.upload(guid, clip);
    await sim.ended(guid);
    expect((await sim.stream.reencode(guid)).status).toBeLessThan(3);
    expect((await sim.ended(guid)).state).toBe('finished');
  });

  it('are found by a part of their title in any case, in pages of at least ten', async () => {
    for (let i = 0; i < 12; i += 1) await sim.stream.create({ title: `Needle ${i}` });
    const page = async (query: string) =>
      (await (await ask(sim, 'GET', `/videos?${query}`)).json()) as {
        totalItems: number;
        itemsPerPage: number;
        items: unknown[];
      };
    expect(await page('search=nEEdle&itemsPerPage=1')).toMatchObject({ totalItems: 12, itemsPerPage: 10 });
    expect((await page('search=needle&itemsPerPage=10&page=2')).items).toHaveLength(2);
    expect((await page('search=needle&itemsPerPage=5000&page=0')).itemsPerPage).toBe(1000);
  });
});

describe('collections', () => {
  it('are made once by name, hold videos, and take them along when deleted', async () => {
    const made = await sim.stream.ensureCollection('Org 7');
    expect((await sim.stream.ensureCollection('Org 7')).guid).toBe(made.guid);
    const inside = await sim.stream.create({ title: 'inside', collectionId: made.guid });
    const outside = await sim.stream.create({ title: 'outside' });
    await sim.stream.update(outside.guid, { title: 'renamed' });
    const members: string[] = [];
    for await (const video of sim.stream.list({ collectionId: made.guid })) members.push(video.guid);
    expect(members).toEqual([inside.guid]);
    expect(await sim.stream.deleteCollection(made.guid)).toBe(true);
    await expect(sim.stream.get(inside.guid)).rejects.toMatchObject({ code: 'bunny_not_found' });
    expect((await sim.stream.get(outside.guid)).title).toBe('renamed');
  });

  it('can be left by a video with an empty id', async () => {
    const { guid: collectionId } = await sim.stream.ensureCollection('Org 8');
    const { guid } = await sim.stream.create({ title: 'leaving', collectionId });
    await sim.stream.update(guid, { title: 'still in' });
    expect((await sim.stream.get(guid)).collectionId).toBe(collectionId);
    await sim.stream.update(guid, { collectionId: '' });
    expect((await sim.stream.get(guid)).collectionId).toBe('');
  });
});

describe('faults', () => {
  it('are refused when misspelt, merged when right, and gone after a reset', async () => {
    expect((await sim.faults({ webhooks: { lots: true } })).status).toBe(400);
    expect((await sim.faults({ rate429: 2 })).status).toBe(400);
    await sim.faults({ latencyMs: 1, webhooks: { lost: 1 } });
    expect(await (await sim.faults({ webhooks: { doubled: true } })).json()).toMatchObject({
      latencyMs: 1,
      webhooks: { lost: 1, doubled: true },
    });
    await fetch(`${sim.streamUrl}/sim/faults`, { method: 'DELETE' });
    expect(await (await fetch(`${sim.streamUrl}/sim/faults`)).json()).toEqual({});
  });

  it('a create that is accepted and never answered makes one video, found again by its title', async () => {
    await sim.faults({ acceptThenTimeout: { create: 1, holdMs: 100 } });
    const { video, found } = await createVideo(sim.stream, { title: 'recipe-lost-answer' });
    expect(found).toBe(true);
    const same: string[] = [];
    for await (const each of sim.stream.list({ search: 'recipe-lost-answer' })) same.push(each.guid);
    expect(same).toEqual([video.guid]);
  });

  it('an upload that is accepted and never answered is taken for done', async () => {
    await sim.faults({ acceptThenTimeout: { upload: 1, holdMs: 100 } });
    const { guid } = await sim.stream.create({ title: 'upload lost' });
    expect(await uploadVideo(sim.stream, guid, clip)).toMatchObject({ outcome: 'already-uploaded' });
    expect((await sim.ended(guid)).state).toBe('finished');
  });

  it('finds a video again where Bunny refuses to search, and where the listing lags', async () => {
    await sim.faults({ acceptThenTimeout: { create: 1, holdMs: 0 }, searchRefused: true });
    expect((await createVideo(sim.stream, { title: 'recipe-no-search' })).found).toBe(true);
    await sim.faults({ eventualListing: 60_000, searchRefused: false });
    await sim.stream.create({ title: 'late-listed' });
    const listed: string[] = [];
    for await (const each of sim.stream.list({ search: 'late-listed' })) listed.push(each.guid);
    expect(listed).toEqual([]);
  });

  it('429 and 5xx are ridden out as long as they pass', async () => {
    await sim.faults({ rate429: { rate: 1, count: 1 }, rate5xx: { rate: 1, count: 1 }, retryAfterSeconds: 0 });
    expect((await createVideo(sim.stream, { title: 'stormy' })).video.title).toBe('stormy');
    await sim.faults({ rate5xx: { rate: 1, match: 'GET /library' } });
    await expect(sim.stream.get('x')).rejects.toMatchObject({ code: 'bunny_unavailable' });
    await sim.stream.create({ title: 'not matched' });
  });

  it('a video can vanish after its upload, get stuck, or finish too short', async () => {
    await sim.faults({
      missingVideo: { match: 'vanishing' },
      stuckTranscode: { match: 'stuck' },
      truncatedFinish: { match: 'short' },
    });
    const upload = async (title: string) => {
      const { guid } = await sim.stream.create({ title });
      await sim.stream.upload(guid, clip);
      return guid;
    };
    await expect(sim.stream.get(await upload('vanishing'))).rejects.toMatchObject({ code: 'bunny_not_found' });
    expect(await sim.ended(await upload('short'))).toMatchObject({ state: 'finished', lengthSeconds: 1, messages: [] });
    const stuck = await upload('stuck');
    await waitFor(async () => (await sim.state(stuck)).status === 'Transcoding', { label: 'the stuck transcode' });
    expect((await sim.ended(await upload('healthy'))).state).toBe('finished');
    expect((await sim.state(stuck)).status).toBe('Transcoding');
  });
});

describe('/sim/log', () => {
  it('tells requests with their bytes, and no key', async () => {
    const { guid } = await sim.stream.create({ title: 'logged' });
    await sim.stream.upload(guid, clip);
    await fetch(`${sim.cdnUrl}/bcdn_token=HS256-secret&expires=1/${guid}/playlist.m3u8`);
    const { size } = await stat(clip);
    const log = await waitFor(
      async () => {
        const found = await sim.log();
        return found.requests.some((each) => each.path.includes('bcdn_token')) ? found : undefined;
      },
      { label: 'the CDN request in the log' },
    );
    expect(log.requests).toContainEqual(
      expect.objectContaining({ method: 'PUT', path: `/library/133/videos/${guid}`, status: 200, bytes: size }),
    );
    const text = JSON.stringify(log);
    expect(text).not.toContain('HS256-secret');
    for (const key of Object.values(SIM_DEFAULTS)) if (String(key).includes('key')) expect(text).not.toContain(key);
  });
});
