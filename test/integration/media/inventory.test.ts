import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { normaliseRecipe, recipeHash } from '../../../lib/domain/recipe.ts';
import type { AssetAnswer, ComposeRequest, RebuildRequest } from '../../../lib/media/contract.ts';
import { makeClip, makeTone } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { MEDIA_TOKEN, type RunningMedia, requestFor, startMedia } from './harness.ts';

type Done = Awaited<ReturnType<RunningMedia['bake']>>['done'];

let media: RunningMedia;
let source: AssetAnswer;
let voice: AssetAnswer;

beforeAll(async () => {
  const dir = await makeTempDir();
  media = await startMedia();
  source = await media.upload(await makeClip(dir, { seconds: 2 }));
  voice = await media.upload(await makeTone(dir, { seconds: 1 }), 'cue');
});
afterAll(() => media.close());
beforeEach(async () => {
  await fetch(`${media.sim.streamUrl}/sim/faults`, { method: 'DELETE' });
});

const hash = (letter: string) => letter.repeat(64);
const title = (letter: string, prefix = 'bakehouse') => `${prefix} ${letter.repeat(32)}`;

describe('the list of videos', () => {
  it('tells ours from foreign ones, page by page, with the time they were made in UTC', async () => {
    const own = await startMedia();
    try {
      const { stream } = own.sim;
      const before = Date.now();
      for (const name of [title('a'), 'Holiday', title('b'), title('b', 'bakehouse staging')])
        await stream.create({ title: name });
      for (let at = 0; at < 10; at++) await stream.create({ title: `filler ${at}` });
      const first = await own.client.listVideos({ page: 1, perPage: 10 });
      const second = await own.client.listVideos({ page: 2, perPage: 10 });
      expect([first.videos.length, first.more, second.videos.length, second.more]).toEqual([10, true, 4, false]);
      expect(second.videos.map(({ recipeHashPrefix }) => recipeHashPrefix)).toEqual([
        null,
        'b'.repeat(32),
        null,
        'a'.repeat(32),
      ]);
      for (const { uploadedAt } of second.videos) {
        expect(uploadedAt).toMatch(/Z$/);
        expect(Math.abs(Date.parse(uploadedAt ?? '') - before)).toBeLessThan(10_000);
      }
      expect((await own.client.listVideos({ page: 3, perPage: 10 })).videos).toEqual([]);
    } finally {
      await own.close();
    }
  });

  it.each(['page=0', 'page=x', 'perPage=1', 'perPage=100000'])('refuses ?%s', async (query) => {
    const response = await fetch(`${media.url}/v1/inventory/videos?${query}`, {
      headers: { authorization: `Bearer ${MEDIA_TOKEN}` },
    });
    expect(response.status).toBe(422);
  });
});

describe('the deletion of a video', () => {
  it('takes one of ours, and says when there was none', async () => {
    const { guid } = await media.sim.stream.create({ title: title('c') });
    expect(await media.client.deleteVideo(guid)).toBe(true);
    expect(await media.client.deleteVideo(guid)).toBe(false);
  });

  it.each(['Holiday 2026', 'bakehouse', title('c', 'bakehouse staging'), `${title('c')} copy`])(
    'is refused for %j, whatever the caller thinks',
    async (name) => {
      const { guid } = await media.sim.stream.create({ title: name });
      await expect(media.client.deleteVideo(guid)).rejects.toMatchObject({ code: 'conflict', status: 409 });
      expect(await media.sim.state(guid)).toMatchObject({ title: name });
    },
  );

  it('follows the configured prefix, so that two installations can share a library', async () => {
    const staging = await startMedia({ BUNNY_TITLE_PREFIX: 'bakehouse staging' }, { sim: media.sim });
    try {
      const { done } = await staging.bake(requestFor(source));
      expect(await media.sim.state(done.videoGuid)).toMatchObject({
        title: expect.stringMatching(/^bakehouse staging [0-9a-f]{32}$/),
      });
      await expect(media.client.deleteVideo(done.videoGuid)).rejects.toMatchObject({ code: 'conflict' });
      expect(await staging.client.deleteVideo(done.videoGuid)).toBe(true);
    } finally {
      await staging.close();
    }
  });
});

describe('the list of stored renders', () => {
  it('names every directory of a recipe hash in order, from behind one on, and nothing else', async () => {
    const own = await startMedia();
    try {
      expect(await own.client.listStored({ after: '', limit: 10 })).toEqual({ recipeHashes: [], more: false });
      for (const name of [hash('3'), hash('1'), hash('2'), 'notes', hash('A')])
        await own.sim.storage.put(`renders/${name}/x.txt`, Buffer.from('x'));
      await own.sim.storage.put(`renders/${hash('4')}`, Buffer.from('a file, not a directory'));
      expect(await own.client.listStored({ after: '', limit: 2 })).toEqual({
        recipeHashes: [hash('1'), hash('2')],
        more: true,
      });
      expect(await own.client.listStored({ after: hash('2'), limit: 2 })).toEqual({
        recipeHashes: [hash('3')],
        more: false,
      });
    } finally {
      await own.close();
    }
  });
});

/** A baked render, and what its row would know of it. */
async function baked(
  request: ComposeRequest,
): Promise<{ done: Done; row: RebuildRequest; dir: string; manifest: string }> {
  const { done } = await media.bake(request);
  const row = {
    ...{ recipeHash: request.recipeHash, recipe: request.recipe },
    assets: request.assets.filter(({ sha256 }) => Object.values(request.recipe.clips).includes(sha256)),
    ...{ masterSha256: done.masterSha256, durationMs: done.durationMs, baselines: done.baselines },
    ...{ posterUrl: done.posterUrl, captionsUrl: done.captionsUrl, warnings: done.warnings },
  };
  return { done, row, dir: `renders/${request.recipeHash}`, manifest: String(await media.stored(done.manifestUrl)) };
}
const stateOf = async (recipeHash: string, masterSha256: string) =>
  (await media.client.checkArtefacts({ renders: [{ recipeHash, masterSha256 }] })).states[0];

describe('the check of artefacts', () => {
  it('finds a whole render whole, and broken what lost its manifest, a file, some bytes or its master', async () => {
    const { done, row, dir, manifest } = await baked(requestFor(source, { reps: 3 }));
    const { storage } = media.sim;
    const path = (url: string) => new URL(url).pathname.slice(1);
    expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('whole');
    expect(await stateOf(row.recipeHash, hash('0'))).toBe('broken');
    expect(await stateOf(hash('0'), row.masterSha256)).toBe('broken');

    for (const url of [done.posterUrl, done.captionsUrl ?? '', done.baselines[0]?.url ?? '']) {
      const bytes = await media.stored(url);
      await storage.delete(path(url));
      expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('broken');
      await storage.put(path(url), bytes.subarray(1));
      expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('broken');
      await storage.put(path(url), bytes);
      expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('whole');
    }
    for (const text of [manifest.slice(0, -20), '', '{}', manifest.replaceAll(row.recipeHash, hash('0'))]) {
      await storage.put(`${dir}/manifest.json`, Buffer.from(text));
      expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('broken');
    }
    await storage.delete(`${dir}/manifest.json`);
    expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('broken');
  });

  it('does not take a listing that lags for a loss', async () => {
    const { row } = await firstBaked();
    await media.sim.faults({ eventualListing: 60_000 });
    expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('whole');
    expect(await media.client.rebuildManifest(row)).toEqual({ outcome: 'rebuilt' });
  });

  it('says of each render whether storage could be asked, in the order asked', async () => {
    const { row } = await firstBaked();
    const asked = [hash('5'), row.recipeHash, hash('6')].map((recipeHash) => ({
      ...{ recipeHash, masterSha256: row.masterSha256 },
    }));
    await media.sim.faults({ rate5xx: { rate: 1, match: hash('6') } });
    expect(await media.client.checkArtefacts({ renders: asked })).toEqual({ states: ['broken', 'whole', 'unknown'] });
  });

  it('lists no more than four directories at a time, whoever asks', async () => {
    const renders = [...'0123456789abcdef'].map((letter) => ({ recipeHash: hash(letter), masterSha256: hash('0') }));
    for (const { recipeHash } of renders) {
      // A manifest that parses, so that its directory is listed.
      const { manifest, row } = await firstBaked();
      const text = manifest.replaceAll(row.recipeHash, recipeHash).replaceAll(row.masterSha256, hash('0'));
      await media.sim.storage.put(`renders/${recipeHash}/manifest.json`, Buffer.from(text));
    }
    await media.sim.faults({ latencyMs: 30 });
    const started = (await media.sim.log()).requests.length;
    await Promise.all([0, 8].map((at) => media.client.checkArtefacts({ renders: renders.slice(at, at + 8) })));
    const listings = (await media.sim.log()).requests
      .slice(started)
      .filter(({ path }) => /\/renders\/[0-9a-f]{64}\/$/.test(path)) as unknown as { at: string; ms: number }[];
    expect(listings).toHaveLength(16);
    const spans = listings.map(({ at, ms }) => ({ from: Date.parse(at), to: Date.parse(at) + ms }));
    const most = Math.max(
      ...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length),
    );
    expect(most).toBeLessThanOrEqual(4);
  });

  it('refuses too many, none, and what is no hash', async () => {
    const one = { recipeHash: hash('1'), masterSha256: hash('2') };
    for (const renders of [[], Array.from({ length: 51 }, () => one), [{ ...one, recipeHash: '../x' }]])
      await expect(media.client.checkArtefacts({ renders })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

let first: ReturnType<typeof baked> | undefined;
const firstBaked = () => {
  first ??= baked(requestFor(source, { reps: 6 }));
  return first;
};

const voiceRequest = () =>
  requestFor(source, { cues: 'voice', clips: { start: voice.sha256, 'count-1': voice.sha256 } }, [voice]);

describe('a rebuilt manifest', () => {
  it.each([
    ['beeps', () => requestFor(source, { cues: 'beeps' })],
    ['no cues, so neither captions nor sound', () => requestFor(source, { cues: 'none' })],
    [
      'voice',
      () => requestFor(source, { cues: 'voice', clips: { start: voice.sha256, 'count-1': voice.sha256 } }, [voice]),
    ],
  ])('is the lost one, byte for byte, also from a media service that has no cache: %s', async (_, request) => {
    const { row, dir, manifest, done } = await baked(request());
    await media.sim.storage.delete(`${dir}/manifest.json`);
    const fresh = await startMedia({}, { sim: media.sim });
    try {
      expect(await fresh.client.rebuildManifest({ ...row, dryRun: true })).toEqual({ outcome: 'rebuilt' });
      expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('broken');
      expect(await fresh.client.rebuildManifest(row)).toEqual({ outcome: 'rebuilt' });
      expect(String(await media.stored(done.manifestUrl))).toBe(manifest);
      expect(await stateOf(row.recipeHash, row.masterSha256)).toBe('whole');
      expect(await fresh.jobDirs()).toEqual([]);
    } finally {
      await fresh.close();
    }
  });

  it('is refused, naming what is missing, where a file is gone or not what the row says', async () => {
    const { row, dir, done } = await baked(requestFor(source, { reps: 7 }));
    const { storage } = media.sim;
    const manifest = `${dir}/manifest.json`;
    await storage.delete(manifest);
    const missing = async (change: Partial<RebuildRequest> = {}) => {
      const answer = await media.client.rebuildManifest({ ...row, ...change });
      return answer.outcome === 'incomplete' ? answer.missing : answer.outcome;
    };
    const [low] = row.baselines;
    expect(await missing({ masterSha256: hash('0') })).toEqual([`${hash('0')}.mp4`]);
    expect(await missing({ durationMs: row.durationMs + 1000 })).toEqual(['a master of this length']);
    expect(await missing({ baselines: [{ ...low!, bytes: low!.bytes + 1 }] })).toEqual([`${low!.sha256}.mp4`]);
    expect(await missing({ posterUrl: 'https://cdn.test/poster.jpg' })).toEqual(['poster.jpg']);

    // Of the right size, but other bytes.
    const master = `${dir}/${row.masterSha256}.mp4`;
    const { bytes } = (await storage.stat(master))!;
    await storage.put(master, Buffer.alloc(bytes));
    expect(await missing()).toEqual([`${row.masterSha256}.mp4`]);
    await storage.delete(new URL(done.posterUrl).pathname.slice(1));
    expect(await missing()).toContain(new URL(done.posterUrl).pathname.split('/').at(-1));
    expect(await storage.stat(manifest)).toBeUndefined();
  });

  it('is an error, not a verdict, where a voice clip or storage cannot be had, or the recipe is another', async () => {
    const { row } = await baked(voiceRequest());
    await expect(media.client.rebuildManifest({ ...row, assets: [] })).rejects.toMatchObject({
      code: 'invalid_request',
    });
    await expect(media.client.rebuildManifest({ ...row, recipeHash: hash('0') })).rejects.toMatchObject({
      code: 'recipe_invalid',
    });
    const recipe = normaliseRecipe({ ...row.recipe, sets: 20, reps: 100, restSeconds: 600 });
    await expect(
      media.client.rebuildManifest({ ...row, recipe, recipeHash: recipeHash(recipe) }),
    ).rejects.toMatchObject({ code: 'recipe_too_long' });
    await media.sim.faults({ rate5xx: 1 });
    await expect(media.client.rebuildManifest(row)).rejects.toMatchObject({ code: 'storage_failed' });
  });
});

it('answers nobody without the token, and takes no body above its cap', async () => {
  const asked: [string, string][] = [
    ['GET', '/v1/inventory/videos'],
    ['DELETE', '/v1/inventory/videos/x'],
    ['GET', '/v1/inventory/renders'],
    ['POST', '/v1/inventory/renders/check'],
    ['POST', '/v1/inventory/renders/rebuild'],
  ];
  for (const [method, path] of asked) expect((await fetch(media.url + path, { method })).status).toBe(401);
  for (const path of ['/v1/inventory/renders/check', '/v1/inventory/renders/rebuild']) {
    expect(await statusOfPost(path, { 'content-length': '600000' })).toBe(413);
    expect(await statusOfPost(path, { 'content-length': '1' }, '{')).toBe(422);
  }
});

/** Announces a body, and sends what is given of it. */
const statusOfPost = (path: string, headers: Record<string, string>, body?: string) =>
  new Promise((resolve, reject) => {
    const sent = request(media.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${MEDIA_TOKEN}`, 'content-type': 'application/json', ...headers },
    });
    sent.once('error', reject).once('response', (response) => {
      resolve(response.statusCode);
      sent.destroy();
    });
    sent.flushHeaders();
    if (body !== undefined) sent.end(body);
  });
