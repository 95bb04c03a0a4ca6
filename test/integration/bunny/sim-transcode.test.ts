import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import { hlsUrl } from '../../../lib/bunny/cdn.ts';
import { createVideo, uploadVideo } from '../../../lib/bunny/video-upload.ts';
import { parseWebhook, verifyWebhook } from '../../../lib/bunny/webhook.ts';
import { probe } from '../../../lib/ffmpeg/probe.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { makeClip, testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningSim, startReceiver, startSim } from './harness.ts';

const tools = testFfmpeg();
let dir: string;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let sim: RunningSim;

beforeAll(async () => {
  dir = await makeTempDir();
  receiver = await startReceiver();
  sim = await startSim({ transcode: tools, webhookUrl: receiver.url });
});
afterAll(async () => {
  await sim.close();
  await receiver.close();
});

/** Downloads a media playlist's segments into one file, as a player would read them. */
async function play(variantUrl: string): Promise<string> {
  const playlist = await (await fetch(variantUrl)).text();
  expect(playlist).toContain('#EXT-X-ENDLIST');
  const parts: Buffer[] = [];
  for (const line of playlist.split('\n').filter((each) => each && !each.startsWith('#'))) {
    const segment = await fetch(new URL(line, variantUrl));
    expect(segment.headers.get('content-type')).toBe('video/mp2t');
    parts.push(Buffer.from(await segment.arrayBuffer()));
  }
  const file = join(dir, 'played.ts');
  await writeFile(file, Buffer.concat(parts));
  return file;
}

const facts = (path: string) => probe({ ffprobePath: tools.ffprobePath, path, timeoutMs: 20_000 });

describe('a video, with real ffmpeg', () => {
  it('plays on every rung, was announced by seven signed webhooks, and went through the API statuses in order', async () => {
    const clip = await makeClip(dir, { seconds: 6, size: '640x360', audio: true });
    const { video } = await createVideo(sim.stream, { title: 'recipe-real' });
    expect(await uploadVideo(sim.stream, video.guid, clip)).toEqual({ outcome: 'uploaded' });
    const order = ['Uploaded', 'Processing', 'Transcoding', 'Finished'];
    const seen: string[] = [];
    const ended = await waitFor(
      async () => {
        const state = await sim.state(video.guid);
        seen.push(String(state.status));
        return state.state === 'finished' ? state : undefined;
      },
      { label: 'the finished video', timeoutMs: 25_000 },
    );
    expect(seen.map((status) => order.indexOf(status))).toEqual(seen.map((status) => order.indexOf(status)).sort());
    expect(ended).toMatchObject({ lengthSeconds: 6, width: 640, height: 360, hasMp4: true, messages: [] });
    expect(ended.availableResolutions).toEqual(['240p', '360p']);

    const master = await (await fetch(hlsUrl(sim.cdnUrl, video.guid))).text();
    expect(master).toMatch(/RESOLUTION=426x240\n240p\/video\.m3u8\n.*RESOLUTION=640x360\n360p\/video\.m3u8/s);
    for (const [rung, width, height] of [
      ['240p', 426, 240],
      ['360p', 640, 360],
    ] as const) {
      const played = await play(`${sim.cdnUrl}/${video.guid}/${rung}/video.m3u8`);
      const { video: picture, audio, claimedDurationMs } = await facts(played);
      expect(picture).toMatchObject({ codec: 'h264', width, height });
      expect(audio).toHaveLength(1);
      expect(Math.abs((claimedDurationMs ?? 0) - 6000)).toBeLessThan(150);
      const { stderrTail } = await runFfmpeg({
        ffmpegPath: tools.ffmpegPath,
        args: ['-i', `file:${played}`, '-f', 'null', '-'],
        silenceMs: 20_000,
        deadlineMs: 20_000,
      });
      expect(stderrTail).toBe('');
    }
    const mp4 = join(dir, 'fallback.mp4');
    await writeFile(mp4, Buffer.from(await (await fetch(`${sim.cdnUrl}/${video.guid}/play_360p.mp4`)).arrayBuffer()));
    expect((await facts(mp4)).video).toMatchObject({ codec: 'h264', height: 360 });
    const thumbnail = Buffer.from(await (await fetch(`${sim.cdnUrl}/${video.guid}/thumbnail.jpg`)).arrayBuffer());
    expect(thumbnail.subarray(0, 2).toString('hex')).toBe('ffd8');

    await waitFor(() => receiver.statuses(video.guid).length === 7, { label: 'seven webhooks' });
    expect(receiver.statuses(video.guid)).toEqual([0, 1, 1, 2, 4, 4, 3]);
    for (const { headers, rawBody, url } of receiver.hooks.filter((hook) => hook.guid === video.guid)) {
      expect(verifyWebhook({ rawBody, headers, keys: [SIM_DEFAULTS.readOnlyKey] })).toEqual({
        ok: true,
        by: 'signature',
      });
      expect(parseWebhook(rawBody)).toMatchObject({ libraryId: SIM_DEFAULTS.libraryId, guid: video.guid });
      expect(url).toBe('/hook?token=receiver-token');
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
    await waitFor(async () => (await sim.state(video.guid)).storageBytes > 0, { label: 'the storage size' });
  });

  it('that is truncated still "finishes", with the length it claims and a warning', async () => {
    const bytes = await readFile(await withHeaderFirst(await makeClip(dir, { seconds: 8, size: '320x240' })));
    const { guid } = await sim.stream.create({ title: 'truncated' });
    await sim.stream.upload(guid, bytes.subarray(0, Math.floor(bytes.length / 2)));
    const ended = await sim.ended(guid);
    expect(ended).toMatchObject({ state: 'finished', lengthSeconds: 8 });
    expect(ended.messages).toEqual([expect.objectContaining({ level: 'warning', code: 'TranscodingWarnings' })]);
    const { claimedDurationMs = 0 } = await facts(await play(`${sim.cdnUrl}/${guid}/240p/video.m3u8`));
    expect(claimedDurationMs).toBeLessThan(6000);
  });

  it('that is garbage fails, announced by 0 and 5 alone', async () => {
    const { guid } = await sim.stream.create({ title: 'garbage' });
    await sim.stream.upload(guid, Buffer.alloc(100_000, 'x'));
    expect((await sim.ended(guid)).state).toBe('failed');
    await waitFor(() => receiver.statuses(guid).includes(5), { label: 'the last webhook' });
    expect(receiver.statuses(guid)).toEqual([0, 5]);
  });

  it('that a fault cuts short "finishes" with a shorter length and really is shorter', async () => {
    await sim.faults({ truncatedFinish: 1 });
    const { guid } = await sim.stream.create({ title: 'cut short' });
    await sim.stream.upload(guid, await makeClip(dir, { seconds: 6, size: '320x240' }));
    expect(await sim.ended(guid)).toMatchObject({ state: 'finished', lengthSeconds: 3, messages: [] });
    const { claimedDurationMs = 0 } = await facts(await play(`${sim.cdnUrl}/${guid}/240p/video.m3u8`));
    expect(claimedDurationMs).toBeLessThan(4000);
  });

  it('that is deleted while ffmpeg works on it leaves no file behind and frees its place', async () => {
    const { guid } = await sim.stream.create({ title: 'deleted early' });
    await sim.stream.upload(guid, await makeClip(dir, { seconds: 12, size: '1280x720' }));
    await waitFor(async () => (await sim.state(guid)).status === 'Transcoding', { label: 'the transcode' });
    expect(await sim.stream.delete(guid)).toBe(true);
    expect((await fetch(hlsUrl(sim.cdnUrl, guid))).status).toBe(404);
    expect(await readdir(join(sim.dataDir, 'incoming'))).toEqual([]);
    expect((await readdir(sim.dataDir, { recursive: true })).filter((name) => name.includes(guid))).toEqual([]);
    const { guid: next } = await sim.stream.create({ title: 'next' });
    await sim.stream.upload(next, await makeClip(dir, { seconds: 1, size: '320x240' }));
    expect((await sim.ended(next)).state).toBe('finished');
  });
});

describe('a restart', () => {
  it('keeps videos, collections and stored files, and resumes a transcode it interrupted', async () => {
    const first = await startSim({ transcode: tools });
    const { guid: collectionId } = await first.stream.ensureCollection('kept');
    const done = await first.stream.create({ title: 'done', collectionId });
    await first.stream.upload(done.guid, await makeClip(dir, { seconds: 1, size: '320x240' }));
    const before = await first.ended(done.guid);
    const empty = await first.stream.create({ title: 'empty' });
    await first.storage.put('renders/kept.txt', Buffer.from('kept'));
    const cut = await first.stream.create({ title: 'interrupted' });
    await first.stream.upload(cut.guid, await makeClip(dir, { seconds: 12, size: '1280x720' }));
    await waitFor(async () => (await first.state(cut.guid)).status === 'Transcoding', { label: 'the transcode' });
    await first.close();

    const second = await startSim({ transcode: tools, dataDir: first.dataDir });
    try {
      const { storageBytes: _, ...same } = before;
      expect(await second.state(done.guid)).toMatchObject(same);
      expect((await fetch(hlsUrl(second.cdnUrl, done.guid))).status).toBe(200);
      expect((await second.state(empty.guid)).state).toBe('created');
      expect((await second.stream.ensureCollection('kept')).guid).toBe(collectionId);
      expect(await second.storage.stat('renders/kept.txt')).toMatchObject({ bytes: 4 });
      expect((await second.ended(cut.guid)).state).toBe('finished');
    } finally {
      await second.close();
    }
  });
});

/** A file with its header in front survives being cut, as an upload of a streaming recorder would. */
async function withHeaderFirst(clip: string): Promise<string> {
  const file = join(dir, 'header-first.mp4');
  await runFfmpeg({
    ffmpegPath: tools.ffmpegPath,
    args: ['-i', `file:${clip}`, '-c', 'copy', '-movflags', '+faststart', `file:${file}`],
    silenceMs: 20_000,
    deadlineMs: 20_000,
  });
  return file;
}
