import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '../../../lib/errors.ts';
import type { AssetAnswer, ComposeDone, ComposeLine, ComposeRequest } from '../../../lib/media/contract.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { ffmpegPids, type RunningMedia, requestFor, startMedia } from './harness.ts';

let media: RunningMedia;
let source: AssetAnswer;
let doses = 0;

beforeAll(async () => {
  media = await startMedia();
  source = await media.upload(await makeClip(await makeTempDir(), { seconds: 1, size: '160x120', rate: 10 }));
  // Pays for the segments that every dose below is made of.
  await media.bake(aDose());
});
afterAll(() => media.close());
afterEach(() => fetch(`${media.sim.streamUrl}/sim/faults`, { method: 'DELETE' }));

/** A tiny dose that nobody has asked for yet. */
const aDose = (): ComposeRequest => {
  doses += 1;
  return requestFor(source, {
    ...{ source: { sha256: source.sha256, startMs: 0, turnMs: 500, endMs: 900 }, reps: 1, leadInSeconds: 0 },
    loudness: -20 + doses * 0.1,
  });
};

type Fact = Exclude<ComposeLine, { type: 'progress' }>;

/** An attempt whose worker dies at a line of the answer: what it had been told, once media has noticed. */
async function attemptCutAt(request: ComposeRequest, isLast: (told: Fact[]) => boolean): Promise<Fact[]> {
  const controller = new AbortController();
  const told: Fact[] = [];
  const outcome = await media.client
    .composeRender(request, {
      ...{ signal: controller.signal, silenceMs: 30_000 },
      onLine: (line) => {
        if (line.type === 'progress' || controller.signal.aborted) return;
        told.push(line);
        if (isLast(told)) controller.abort();
      },
    })
    .catch((error: unknown) => error);
  expect(controller.signal.aborted).toBe(true);
  if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'aborted' });
  await idle();
  return told;
}

async function idle() {
  await waitFor(async () => (await media.client.capacity()).busy === 0, {
    label: 'media to let go',
    timeoutMs: 20_000,
  });
  expect(await media.jobDirs()).toEqual([]);
  expect(await ffmpegPids()).toEqual([]);
}

/** What a worker hands on that has written down what it was told. */
const resumeAfter = (told: readonly Fact[]) => {
  const video = told.find((line) => line.type === 'video');
  return video && { resume: { masterSha256: video.masterSha256, videoGuid: video.guid } };
};

async function videosOf({ recipeHash }: ComposeRequest) {
  const found = [];
  for await (const video of media.sim.stream.list()) {
    if (video.title.endsWith(recipeHash.slice(0, 32))) found.push(video);
  }
  return found;
}

/** What was asked of Bunny to get the bytes of a video there, in order. */
async function putsOf(guid: string) {
  const { requests } = await media.sim.log();
  return requests.filter(({ method, path }) => method === 'PUT' && path.endsWith(guid));
}
const uploadsOf = async (guid: string) => (await putsOf(guid)).filter(({ status }) => status === 200).length;

/** One video with the master's bytes, sent once; every artefact there and whole; a manifest that tells the truth. */
async function expectWhole(request: ComposeRequest, done: ComposeDone) {
  const videos = await videosOf(request);
  expect(videos.map(({ guid }) => guid)).toEqual([done.videoGuid]);
  expect(videos[0]?.originalHash?.toLowerCase()).toBe(done.masterSha256);
  const manifest = await media.manifestOf(done.manifestUrl);
  expect(manifest.recipeHash).toBe(request.recipeHash);
  expect(manifest.master.sha256).toBe(done.masterSha256);
  expect(manifest.durationMs).toBe(done.durationMs);
  const files = [
    manifest.master,
    manifest.poster,
    ...manifest.baselines,
    ...(manifest.captions ? [manifest.captions] : []),
  ];
  expect(files).toHaveLength(5);
  for (const { url, sha256, bytes } of files) {
    const stored = await media.stored(url);
    expect([stored.length, createHash('sha256').update(stored).digest('hex')]).toEqual([bytes, sha256]);
  }
}

const LINES = ['captions', 'poster', 'baseline', 'baseline', 'master', 'manifest', 'video', 'done'] as const;
/** Before the master is stored nothing can be used again, whatever else is: the first and the last of these will do. */
const LIKE_THE_FIRST = new Set([2, 3]);

describe('an attempt that dies', () => {
  it.each(LINES.map((kind, index) => [index + 1, kind] as const).filter(([count]) => !LIKE_THE_FIRST.has(count)))(
    'after line %i (%s) leaves what the next one uses: one video, sent once, everything stored',
    async (count, kind) => {
      const request = aDose();
      const told = await attemptCutAt(request, (lines) => lines.length === count);
      expect(told.map((line) => (line.type === 'stored' ? line.kind : line.type)).at(-1)).toBe(kind);
      const { done } = await media.bake({ ...request, ...resumeAfter(told) });
      if (LINES.slice(0, count).includes('manifest')) expect(done.resumed).toBe(true);
      await expectWhole(request, done);
      await expect.poll(() => uploadsOf(done.videoGuid)).toBe(1);
    },
  );

  it.each(['video', 'done'] as const)(
    'before it could write down the %s it was told of leaves no second video',
    async (type) => {
      const request = aDose();
      await attemptCutAt(request, (lines) => lines.at(-1)?.type === type);
      const { done } = await media.bake(request);
      expect(done.resumed).toBe(true);
      await expectWhole(request, done);
      await expect.poll(() => uploadsOf(done.videoGuid)).toBe(1);
    },
  );

  it('while its bytes are on their way leaves an empty video, which the next one fills', async () => {
    const request = aDose();
    // Nothing of the upload is taken before the caller is gone.
    await media.sim.faults({ latencyMs: 300 });
    const told = await attemptCutAt(request, (lines) => lines.at(-1)?.type === 'video');
    await media.sim.faults({ latencyMs: 0 });
    const left = await videosOf(request);
    expect(left).toHaveLength(1);
    const { done } = await media.bake({ ...request, ...resumeAfter(told) });
    expect(done.videoGuid).toBe(left[0]?.guid);
    await expectWhole(request, done);
  });

  it('has its video given up only where the caller says so: then another one is made from the stored master', async () => {
    const request = aDose();
    const { done } = await media.bake(request);
    const again = await media.bake({ ...request, resume: { masterSha256: done.masterSha256 } });
    expect(again.done).toMatchObject({ resumed: true, masterSha256: done.masterSha256 });
    expect(again.done.videoGuid).not.toBe(done.videoGuid);
  });
});

describe('Bunny', () => {
  it.each([[{}], [{ searchRefused: true }]])(
    'that made the video and never said so is not asked for a second one (%j)',
    async (faults) => {
      const request = aDose();
      await media.sim.faults({ acceptThenTimeout: { create: 1, holdMs: 50 }, ...faults });
      const { done } = await media.bake(request);
      await expectWhole(request, done);
      await expect.poll(() => uploadsOf(done.videoGuid)).toBe(1);
    },
  );

  it('that took the bytes and never said so gets them once', async () => {
    const request = aDose();
    await media.sim.faults({ acceptThenTimeout: { upload: 1, holdMs: 50 } });
    const { done, lines } = await media.bake(request);
    await expectWhole(request, done);
    expect(lines.filter(({ type }) => type === 'video')).toHaveLength(1);
    await expect.poll(() => putsOf(done.videoGuid)).toHaveLength(1);
  });

  it('that fails now and then costs tries, not videos', async () => {
    const request = aDose();
    await media.sim.faults({ rate5xx: { rate: 1, count: 1, match: 'POST /library' } });
    await media.sim.faults({ rate429: { rate: 1, count: 1, match: 'PUT /library' }, retryAfterSeconds: 0 });
    const { done } = await media.bake(request);
    await expectWhole(request, done);
  });

  it('is left alone as long as it asks for: a short wait here, a long one by the caller', async () => {
    const request = aDose();
    await media.sim.faults({ rate429: { rate: 1, count: 1, match: 'PUT /library' }, retryAfterSeconds: 1 });
    const { done } = await media.bake(request);
    await expect.poll(() => uploadsOf(done.videoGuid)).toBe(1);
    const puts = await putsOf(done.videoGuid);
    expect(puts.map(({ status }) => status)).toEqual([429, 200]);
    const [refused, taken] = puts.map(({ at }) => Date.parse(at));
    expect((taken ?? 0) - (refused ?? 0)).toBeGreaterThanOrEqual(990);

    await media.sim.faults({ rate429: { rate: 1, count: 1, match: 'PUT /library' }, retryAfterSeconds: 60 });
    const busy = await media.bake(aDose()).catch((error: unknown) => error);
    expect(busy).toBeInstanceOf(AppError);
    expect(busy).toMatchObject({ code: 'bunny_unavailable', retryable: true, retryAfterMs: 60_000 });
  });
});

describe('a source that is deleted', () => {
  it('before it is fetched fails the attempt in its own words, which may be tried again, and leaves nothing', async () => {
    const file = await makeClip(await makeTempDir(), { seconds: 1, size: '160x120', rate: 12 });
    // Another service has looked at it: nothing of it is cached here.
    const other = await startMedia({}, { sim: media.sim });
    const gone = await other.upload(file).finally(other.close);
    await media.sim.storage.delete(gone.location?.slice('zone:'.length) ?? '');
    const request = requestFor(gone, { reps: 1 });
    await expect(media.bake(request)).rejects.toMatchObject({ code: 'asset_unavailable', retryable: true });
    await idle();
    expect(await videosOf(request)).toEqual([]);
    expect(await media.sim.storage.list(`renders/${request.recipeHash}`)).toEqual([]);
  });

  it('while it is being baked costs nothing: the bake has its own copy', async () => {
    const file = await makeClip(await makeTempDir(), { seconds: 1, size: '160x120', rate: 15 });
    const given = await media.upload(file);
    const request = requestFor(given, { reps: 1, leadInSeconds: 0 });
    let deleted: Promise<unknown> | undefined;
    const done = await media.client.composeRender(request, {
      ...{ signal: AbortSignal.timeout(60_000), silenceMs: 30_000 },
      onLine: (line) => {
        if (line.type === 'progress' && line.stage === 'segments') {
          deleted ??= media.sim.storage.delete(given.location?.slice('zone:'.length) ?? '');
        }
      },
    });
    expect(deleted).toBeDefined();
    await deleted;
    await expectWhole(request, done);
  });
});
