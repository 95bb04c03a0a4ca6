import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AssetAnswer, ComposeLine } from '../../../lib/media/contract.ts';
import { runShutdown } from '../../../lib/shutdown.ts';
import { makeClip, makeTone } from '../../support/ffmpeg.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { ffmpegPids, MEDIA_TOKEN, make, type RunningMedia, requestFor, sha256Of, startMedia } from './harness.ts';

let media: RunningMedia;
let dir: string;
let source: AssetAnswer;

beforeAll(async () => {
  dir = await makeTempDir();
  media = await startMedia({ MEDIA_CONCURRENCY: '1', MEDIA_HEARTBEAT_MS: '100', MEDIA_MAX_UPLOAD_BYTES: '20000000' });
  source = await media.upload(await makeClip(dir, { seconds: 2 }));
});
afterAll(() => media.close());

const authorised = { authorization: `Bearer ${MEDIA_TOKEN}` };
const post = (path: string, body: unknown) =>
  fetch(`${media.url}${path}`, {
    method: 'POST',
    headers: { ...authorised, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** Takes half a minute to encode on one core: long enough to be interrupted. */
const slowRequest = () =>
  requestFor(source, { reps: 1, tempo: { out: 60, hold: null, back: 60, pause: null }, loudness: -17 });

/** A bake under way, with an ffmpeg running. */
async function startSlowBake(on: RunningMedia = media) {
  await waitFor(async () => (await on.client.capacity()).busy === 0, { label: 'a free slot' });
  const controller = new AbortController();
  const lines: ComposeLine[] = [];
  const ended = on.client
    .composeRender(slowRequest(), { signal: controller.signal, silenceMs: 30_000, onLine: (line) => lines.push(line) })
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  await waitFor(async () => (await ffmpegPids()).length > 0, { label: 'an ffmpeg' });
  return { controller, lines, ended };
}

/** Announces a body and never sends it. */
function postHeadersOnly(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers: { ...authorised, 'content-length': 1000 }, timeout: 5_000 });
    sent.once('response', (response) => {
      resolve(response);
      sent.destroy();
    });
    sent.once('timeout', () => reject(new Error('no answer before the body')));
    sent.once('error', reject);
    sent.flushHeaders();
  });
}

describe('the door', () => {
  it('is open to health checks and shut to everything else without the token', async () => {
    for (const path of ['/healthz', '/readyz']) expect((await fetch(media.url + path)).status).toBe(200);
    for (const path of ['/capacity', '/metrics', '/v1/exercises/videos/x/status', '/v1/assets']) {
      for (const headers of [{}, { authorization: `Bearer ${MEDIA_TOKEN}x` }, { authorization: MEDIA_TOKEN }]) {
        const response = await fetch(media.url + path, { headers });
        expect(response.status).toBe(401);
        expect(await response.json()).toMatchObject({ code: 'unauthorized' });
      }
    }
  });

  it('refuses a recipe that cannot become a video before any work, in words', async () => {
    const good = requestFor(source);
    const cases: [unknown, number, string][] = [
      ['{', 422, 'invalid_request'],
      [{ ...good, recipe: { ...good.recipe, reps: 0 } }, 422, 'invalid_request'],
      [{ ...good, recipe: { ...good.recipe, colour: 'red' } }, 422, 'invalid_request'],
      [{ ...good, recipeHash: '0'.repeat(64) }, 422, 'recipe_invalid'],
      [{ ...good, assets: [{ sha256: 'b'.repeat(64), location: 'zone:assets/platform/x' }] }, 422, 'invalid_request'],
      [{ ...good, assets: [{ sha256: source.sha256, location: 'zone:renders/x' }] }, 422, 'invalid_request'],
      [requestFor(source, { sets: 20, reps: 100, restSeconds: 600 }), 422, 'recipe_too_long'],
    ];
    for (const [body, status, code] of cases) {
      const response = await post('/v1/exercises/compose', body);
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ code });
    }
    expect(await media.client.capacity()).toEqual({ instance: expect.any(String), slots: 1, busy: 0, draining: false });
  });

  it('will not read a local file, unless a folder was opened, and never outside of it', async () => {
    const file = await makeClip(dir, { seconds: 1 });
    const local = { sha256: await sha256Of(file), location: `file://${file}` };
    await expect(media.bake(requestFor(local))).rejects.toMatchObject({ code: 'asset_unavailable', retryable: false });
    const open = await startMedia({ MEDIA_FILE_ROOT: dir }, { sim: media.sim });
    try {
      expect((await open.bake(requestFor(local))).done.resumed).toBe(false);
      const outside = await makeTone(await makeTempDir(), { seconds: 1 });
      const sneaky = {
        sha256: await sha256Of(outside),
        location: `file://${dir}/../${outside.split('/').slice(-2).join('/')}`,
      };
      await expect(open.bake(requestFor(sneaky))).rejects.toMatchObject({ code: 'asset_unavailable' });
    } finally {
      await open.close();
    }
  });
});

describe('a service with all slots taken', () => {
  it('turns the next caller away before it has sent its body, and says when to come back', async () => {
    const slow = await startSlowBake();
    try {
      const response = await postHeadersOnly(`${media.url}/v1/exercises/compose`);
      expect(response.statusCode).toBe(429);
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      await expect(media.bake(requestFor(source))).rejects.toMatchObject({ code: 'media_busy', retryable: true });
      expect(await media.client.capacity()).toMatchObject({ busy: 1 });
    } finally {
      slow.controller.abort();
      await slow.ended;
    }
    await waitFor(async () => (await media.client.capacity()).busy === 0, { label: 'the slot to be free' });
    expect((await media.bake(requestFor(source))).done.type).toBe('done');
  });
});

describe('a caller that goes away', () => {
  it('takes its bake along: every ffmpeg is dead at once, its folder gone, its slot free', async () => {
    const slow = await startSlowBake();
    const pids = await ffmpegPids();
    expect(pids.length).toBeGreaterThan(0);
    slow.controller.abort();
    expect(await slow.ended).toMatchObject({ code: 'aborted' });
    await waitFor(async () => (await ffmpegPids()).length === 0, { label: 'ffmpeg to die', timeoutMs: 3_000 });
    await waitFor(async () => (await media.jobDirs()).length === 0, { label: 'the folder to go', timeoutMs: 3_000 });
    expect(await media.client.capacity()).toMatchObject({ busy: 0 });
  });

  it('leaves nothing behind of half an upload', async () => {
    const controller = new AbortController();
    const half = (async function* () {
      yield Buffer.alloc(64 * 1024);
      await waitFor(async () => (await media.jobDirs()).length > 0, { label: 'the upload to begin' });
      controller.abort();
      yield Buffer.alloc(64 * 1024);
      await new Promise(() => undefined);
    })();
    const upload = media.client.uploadAsset(
      { tier: 'platform', kind: 'source', body: half },
      { signal: controller.signal },
    );
    await expect(upload).rejects.toMatchObject({ code: 'aborted' });
    await waitFor(async () => (await media.jobDirs()).length === 0, { label: 'the folder to go' });
  });
});

describe('a long bake', () => {
  it('is never silent for longer than the heartbeat', async () => {
    const times: number[] = [];
    const controller = new AbortController();
    const bake = media.client.composeRender(slowRequest(), {
      ...{ signal: controller.signal, silenceMs: 10_000 },
      onLine: () => {
        times.push(performance.now());
        if (times.length > 20) controller.abort();
      },
    });
    await expect(bake).rejects.toMatchObject({ code: 'aborted' });
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    // Thirty heartbeats: what is between is a busy machine.
    expect(Math.max(...gaps)).toBeLessThan(3_000);
  });
});

describe('a service that is told to stop', () => {
  it('refuses new bakes, ends the one that takes too long with its processes, and closes', async () => {
    const stopping = await startMedia({ MEDIA_DRAIN_MS: '300' }, { sim: media.sim });
    const other = await makeClip(dir, { seconds: 2, rate: 24 });
    source = await stopping.upload(other);
    const slow = await startSlowBake(stopping);
    const stopped = runShutdown(stopping.steps, silentLog);
    expect((await fetch(`${stopping.url}/readyz`)).status).toBe(503);
    await expect(stopping.bake(requestFor(source))).rejects.toMatchObject({
      code: 'media_draining',
      retryAfterMs: 5_000,
    });
    expect(await slow.ended).toMatchObject({ code: 'media_draining', retryable: true });
    expect(await stopped).toEqual([]);
    expect(await ffmpegPids()).toEqual([]);
    await expect(fetch(`${stopping.url}/healthz`)).rejects.toThrow();
  });
});

describe('an upload', () => {
  it('is stored under its hash, once, and reported on', async () => {
    const file = await makeClip(dir, { seconds: 1, size: '640x360' });
    const first = await media.upload(file, 'source', 'org:0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0003');
    const sha256 = await sha256Of(file);
    expect(first).toMatchObject({
      sha256,
      report: { errors: [], facts: { durationMs: 1000, frames: 25, width: 640 } },
    });
    expect(first.location).toBe(`zone:assets/orgs/0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0003/${sha256}`);
    const changedAt = async () =>
      (await media.sim.storage.stat(first.location?.slice('zone:'.length) ?? ''))?.changedAt;
    const before = await changedAt();
    expect(await media.upload(file, 'source', 'org:0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0003')).toEqual(first);
    expect(await changedAt()).toEqual(before);
    const location = first.location ?? '';
    expect(await media.client.validate({ sha256, location }, 'source')).toEqual(first.report);
    await expect(media.client.validate({ sha256: 'a'.repeat(64), location }, 'source')).rejects.toMatchObject({
      code: 'asset_corrupt',
    });
  });

  it('of a playlist in disguise is refused, and what it names is never read', async () => {
    let hits = 0;
    const server = createServer((_, response) => {
      hits += 1;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const remote = `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret.ts`;
    const secret = await makeTone(dir, { seconds: 1 });
    const disguises = [
      `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${remote}\n#EXT-X-ENDLIST\n`,
      `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile://${secret}\n#EXT-X-ENDLIST\n`,
      `ffconcat version 1.0\nfile '${secret}'\n`,
      `v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n`,
      `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period><AdaptationSet><Representation id="1"><BaseURL>${remote}</BaseURL></Representation></AdaptationSet></Period></MPD>`,
    ];
    for (const [index, text] of disguises.entries()) {
      const file = join(dir, `disguise-${index}.mp4`);
      await writeFile(file, text);
      for (const kind of ['source', 'cue'] as const) {
        const answer = await media.upload(file, kind);
        expect(answer).toMatchObject({ location: null, report: { errors: [{ code: 'source_undecodable' }] } });
      }
    }
    expect(hits).toBe(0);
    server.close();
  });

  it('says in plain words what is wrong with a file', async () => {
    const whole = await make(dir, 'long.mp4', [
      ...['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25:duration=4', '-c:v', 'libx264', '-preset', 'ultrafast'],
      ...['-g', '25', '-movflags', '+faststart'],
    ]);
    const bytes = await readFile(whole);
    const files: [string, Buffer | string, 'source' | 'cue', string][] = [
      ['empty', Buffer.alloc(1), 'source', 'source_undecodable'],
      ['cut', bytes.subarray(0, Math.floor(bytes.length * 0.5)), 'source', 'source_undecodable'],
      ['sound', await makeTone(dir, { seconds: 1, format: 'm4a' }), 'source', 'source_no_video'],
      ['picture', await makeClip(dir, { seconds: 1 }), 'cue', 'source_no_audio'],
      ['long-cue', await makeTone(dir, { seconds: 16, format: 'mp3' }), 'cue', 'source_too_long'],
      [
        'short',
        await make(dir, 'short.mp4', ['-f', 'lavfi', '-i', 'testsrc2=rate=25:duration=0.1']),
        'source',
        'source_too_short',
      ],
    ];
    for (const [name, content, kind, code] of files) {
      const file = typeof content === 'string' ? content : join(dir, name);
      if (typeof content !== 'string') await writeFile(file, content);
      const { location, report } = await media.upload(file, kind);
      expect([name, location, report.errors.map((error) => error.code)]).toEqual([name, null, [code]]);
      expect(report.errors[0]?.sentence).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('that is too large is broken off', async () => {
    const announced = fetch(`${media.url}/v1/assets?tier=platform&kind=source`, {
      ...{ method: 'PUT', headers: authorised, body: Buffer.alloc(20_000_001) },
    });
    expect((await announced).status).toBe(413);
    const chunk = Buffer.alloc(1_000_000);
    const endless = (async function* () {
      for (let sent = 0; sent < 60; sent++) yield chunk;
    })();
    await expect(
      media.client.uploadAsset(
        { tier: 'platform', kind: 'cue', body: endless },
        { signal: AbortSignal.timeout(10_000) },
      ),
    ).rejects.toMatchObject({ code: 'source_too_large' });
    await waitFor(async () => (await media.jobDirs()).length === 0, { label: 'the folder to go' });
  });
});

describe('what it tells', () => {
  it("is Bunny's state of a video in our words", async () => {
    expect(await media.client.videoStatus('00000000-0000-4000-8000-000000000000')).toMatchObject({ state: 'missing' });
    const empty = await media.sim.stream.create({ title: 'empty' });
    expect(await media.client.videoStatus(empty.guid)).toMatchObject({
      ...{ guid: empty.guid, state: 'created', hlsUrl: `${media.sim.cdnUrl}/${empty.guid}/playlist.m3u8` },
    });
  });

  it('counts bakes, segments, uploads and slots', async () => {
    const text = await (await fetch(`${media.url}/metrics`, { headers: authorised })).text();
    for (const line of [
      /^bakehouse_media_slots\{.*\} 1$/m,
      /^bakehouse_media_bakes_total\{outcome="done".*\} [1-9]/m,
      /^bakehouse_media_bakes_total\{outcome="aborted".*\} [1-9]/m,
      /^bakehouse_media_segments_total\{from="encoder".*\} [1-9]/m,
      /^bakehouse_media_uploads_total\{kind="source",outcome="refused".*\} [1-9]/m,
      /^bakehouse_http_requests_total\{method="POST",route="\/v1\/exercises\/compose",status="429".*\} [1-9]/m,
    ]) {
      expect(text).toMatch(line);
    }
  });
});
