import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildTimeline, msOfFrame } from '../../../lib/domain/timeline.ts';
import { inputArgs } from '../../../lib/ffmpeg/argv.ts';
import { measureLoudness, measureVideo, SAMPLE_RATE } from '../../../lib/ffmpeg/decode.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import type { AssetAnswer } from '../../../lib/media/contract.ts';
import { readMp4 } from '../../../lib/media/mp4.ts';
import { makeClip, makeTone, testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { type RunningMedia, requestFor, sha256Of, startMedia } from './harness.ts';

let media: RunningMedia;
let source: AssetAnswer;
let dir: string;

beforeAll(async () => {
  dir = await makeTempDir();
  media = await startMedia();
  source = await media.upload(await makeClip(dir, { seconds: 2, audio: true }));
});
afterAll(() => media.close());

const limits = { silenceMs: 20_000, deadlineMs: 60_000 };

async function fetchTo(name: string, url: string): Promise<string> {
  const file = join(dir, name);
  await writeFile(file, await media.stored(url));
  return file;
}

describe('a bake', () => {
  it('makes every artefact, each as exact as the timeline, and gives one video to Bunny', async () => {
    const request = requestFor(source, { sides: 'left-right' });
    const timeline = buildTimeline(request.recipe);
    const { done, lines } = await media.bake(request);

    expect(done.durationMs).toBe(msOfFrame(timeline.frames));
    const manifest = await media.manifestOf(done.manifestUrl);
    expect(manifest.frames).toBe(timeline.frames);
    expect(manifest.master.sha256).toBe(done.masterSha256);
    expect(manifest.timeline.reduce((sum, segment) => sum + segment.frames, 0)).toBe(timeline.frames);

    for (const file of [manifest.master, ...manifest.baselines]) {
      const path = await fetchTo(file.sha256, file.url);
      expect(await sha256Of(path)).toBe(file.sha256);
      const { fastStart, tracks } = await readMp4(path);
      expect(fastStart).toBe(true);
      expect(tracks.map(({ handler }) => handler)).toEqual(['vide', 'soun']);
      expect(tracks[0]).toMatchObject({ samples: timeline.frames, timescale: 15_360, deltas: [512], reordered: false });
      const decoded = await measureVideo({
        ...{ ffmpegPath: testFfmpeg().ffmpegPath, path, stream: 0, maxSeconds: 600, ...limits },
      });
      expect(decoded).toMatchObject({ frames: timeline.frames, errorLines: 0, exitCode: 0 });
    }
    expect(manifest.baselines.map(({ width, height }) => `${width}x${height}`)).toEqual(['854x480', '1280x720']);
    expect(String(await media.stored(done.captionsUrl ?? ''))).toMatch(/^WEBVTT\n\n00:00:00\.000 --> /);
    expect((await media.stored(done.posterUrl)).subarray(0, 3)).toEqual(Buffer.from([0xff, 0xd8, 0xff]));

    const kinds = lines.flatMap((line) =>
      line.type === 'progress' ? [] : [line.type === 'stored' ? line.kind : line.type],
    );
    expect(kinds).toEqual(['captions', 'poster', 'baseline', 'baseline', 'master', 'manifest', 'video', 'done']);
    const percents = lines.flatMap((line) => (line.type === 'progress' ? [line.percent] : []));
    expect(percents).toEqual([...percents].sort((a, b) => a - b));
    expect(percents.at(-1)).toBe(100);

    const video = await media.sim.stream.get(done.videoGuid);
    expect(video.title).toBe(`bakehouse ${request.recipeHash.slice(0, 32)}`);
    expect(await media.jobDirs()).toEqual([]);
  });

  it('lets every voiced cue be heard within one frame of the offset in its manifest', async () => {
    const { done } = await media.bake(
      requestFor(source, { reps: 3, tempo: { out: 0.7, hold: 0, back: 0.8, pause: 0.4 } }),
    );
    const manifest = await media.manifestOf(done.manifestUrl);
    const samples = await decodeMono(await fetchTo('cues.mp4', manifest.master.url));
    // A decoder may hand out the last AAC frame whole.
    expect(Math.abs(samples.length - (manifest.frames * SAMPLE_RATE) / 30)).toBeLessThan(1024);
    const voiced = manifest.cues.filter((cue) => cue.voiced);
    expect(voiced.length).toBeGreaterThan(3);
    for (const cue of voiced) {
      const expected = (cue.offsetMs * SAMPLE_RATE) / 1000;
      const from = Math.max(0, Math.round(expected - SAMPLE_RATE * 0.1));
      const onset = samples.findIndex((sample, index) => index >= from && Math.abs(sample) > 0.02);
      expect(Math.abs(onset - expected)).toBeLessThan(SAMPLE_RATE / 30);
    }
  });

  it('is as loud as the recipe asks, without peaks above -1 dBTP', async () => {
    const { done } = await media.bake(requestFor(source, { loudness: -14 }));
    const manifest = await media.manifestOf(done.manifestUrl);
    const path = await fetchTo('loud.mp4', manifest.master.url);
    const heard = await measureLoudness({ ffmpegPath: testFfmpeg().ffmpegPath, input: inputArgs(path), ...limits });
    expect(Math.abs(heard.lufs + 14)).toBeLessThanOrEqual(1);
    expect(heard.truePeakDb).toBeLessThanOrEqual(-1);
    expect(manifest.quality.lufs).toBe(heard.lufs);
  });

  it('speaks with the clips it is given, and stays silent without any cue', async () => {
    const clip = await media.upload(await makeTone(dir, { seconds: 0.4, format: 'mp3' }), 'cue');
    const spoken = requestFor(source, { cues: 'voice', clips: { start: clip.sha256, 'count-1': clip.sha256 } }, [clip]);
    const { done } = await media.bake(spoken);
    const { quality } = await media.manifestOf(done.manifestUrl);
    expect(Math.abs((quality.lufs ?? 0) + 16)).toBeLessThanOrEqual(1);

    const silent = await media.bake(requestFor(source, { cues: 'none' }));
    const manifest = await media.manifestOf(silent.done.manifestUrl);
    expect(manifest.quality).toMatchObject({ lufs: null, truePeakDb: null });
    expect(manifest.captions).toBeNull();
    expect(silent.done.captionsUrl).toBeNull();
  });
});

describe('what is paid for', () => {
  it('encodes no segment again for another dose, and none for another language', async () => {
    await media.bake(requestFor(source, { reps: 2, sets: 2, restSeconds: 2 }));
    const more = requestFor(source, { reps: 3, sets: 3, restSeconds: 4 });
    expect((await media.bake(more)).done.segments.encoded).toBe(0);
    const german = requestFor(source, { reps: 2, sets: 2, restSeconds: 2, language: 'de' });
    expect((await media.bake(german)).done.segments.encoded).toBe(0);
  });

  it('makes the same master byte by byte, in another process with nothing cached', async () => {
    const request = requestFor(source, { reps: 2, tempo: { out: 1.3, hold: 0.5, back: 0.7, pause: null } });
    const here = await media.bake(request);
    await media.sim.storage.delete(new URL(here.done.manifestUrl).pathname.slice(1));
    const other = await startMedia({ MEDIA_ENCODERS: '1' }, { sim: media.sim });
    try {
      const there = await other.bake(request);
      expect(there.done.segments).toMatchObject({ reused: 0 });
      expect(there.done.masterSha256).toBe(here.done.masterSha256);
      expect(there.done.baselines).toEqual(here.done.baselines);
    } finally {
      await other.close();
    }
  });

  it('survives the loss of its whole cache, even in the middle of a bake', async () => {
    // A file that is being put there can win against the removal.
    const vanish = () => rm(media.config.MEDIA_CACHE_DIR, { recursive: true, force: true }).catch(() => undefined);
    await vanish();
    const request = requestFor(source, { reps: 3, tempo: { out: 0.9, hold: 1, back: 0.9, pause: null } });
    let vanished = 0;
    const done = await media.client.composeRender(request, {
      signal: AbortSignal.timeout(60_000),
      silenceMs: 20_000,
      onLine: (line) => {
        if (line.type === 'progress' && line.percent > 20 && vanished++ < 3) void vanish();
      },
    });
    expect(vanished).toBeGreaterThan(0);
    expect(done.durationMs).toBe(msOfFrame(buildTimeline(request.recipe).frames));
  });
});

describe('an interrupted attempt', () => {
  it('is continued with what storage and Bunny have: no second bake, no second video', async () => {
    const request = requestFor(source, { reps: 1 });
    const { done } = await media.bake(request);
    const resume = { masterSha256: done.masterSha256, videoGuid: done.videoGuid };
    const again = await media.bake({ ...request, resume });
    expect(again.done).toMatchObject({ resumed: true, videoGuid: done.videoGuid, segments: { encoded: 0, reused: 0 } });
    expect(again.done.manifestUrl).toBe(done.manifestUrl);
    expect(again.lines.map(({ type }) => type)).toEqual(['video', 'done']);
    const titled = [];
    for await (const video of media.sim.stream.list({ search: request.recipeHash.slice(0, 32) })) titled.push(video);
    expect(titled).toHaveLength(1);
  });

  it('fills the empty video that was made before, and makes a new one where that is gone', async () => {
    const request = requestFor(source, { reps: 1, loudness: -15 });
    const first = await media.bake(request);
    const resume = (videoGuid: string) => ({ masterSha256: first.done.masterSha256, videoGuid });
    const empty = await media.sim.stream.create({ title: 'made before the crash' });
    const filled = await media.bake({ ...request, resume: resume(empty.guid) });
    expect(filled.done).toMatchObject({ resumed: true, videoGuid: empty.guid });
    expect((await media.sim.stream.get(empty.guid)).status).not.toBe(0);

    await media.sim.stream.delete(empty.guid);
    const anew = await media.bake({ ...request, resume: resume(empty.guid) });
    expect(anew.done.resumed).toBe(true);
    expect(anew.done.videoGuid).not.toBe(empty.guid);
  });

  it('bakes again where the manifest is missing, and still fills the same video', async () => {
    const request = requestFor(source, { reps: 1, loudness: -17 });
    const { done } = await media.bake(request);
    await media.sim.storage.delete(new URL(done.manifestUrl).pathname.slice(1));
    const resume = { masterSha256: done.masterSha256, videoGuid: done.videoGuid };
    const again = await media.bake({ ...request, resume });
    expect(again.done).toMatchObject({ resumed: false, videoGuid: done.videoGuid, masterSha256: done.masterSha256 });
    expect((await media.manifestOf(again.done.manifestUrl)).master.sha256).toBe(done.masterSha256);
  });
});

async function decodeMono(path: string): Promise<Float32Array> {
  const chunks: Buffer[] = [];
  await runFfmpeg({
    ffmpegPath: testFfmpeg().ffmpegPath,
    args: [...inputArgs(path), '-map', '0:a:0', '-ac', '1', '-f', 'f32le', 'pipe:1'],
    ...limits,
    stdout: async (stream) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    },
  });
  return new Float32Array(new Uint8Array(Buffer.concat(chunks)).buffer);
}
