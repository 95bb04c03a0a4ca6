import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { desc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSim, SIM_DEFAULTS, type Sim } from '../../../apps/bunny-sim/sim.ts';
import { type Listener, listen } from '../../../apps/edge/listen.ts';
import { createMedia, type Media } from '../../../apps/media/media.ts';
import { loadMediaConfig } from '../../../lib/config/media.ts';
import { cueClips, exerciseSources, organisations } from '../../../lib/db/schema/index.ts';
import { anExercise } from '../../support/clinic.ts';
import { makeClip, makeTone, testFfmpeg } from '../../support/ffmpeg.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { type Caller, DEAD, people, problemOf, startEdge, type TestEdge, tokenFor } from './fixture.ts';

const MEDIA_TOKEN = 'a-token-for-media';
const MAX_BYTES = 2_000_000;

const who = people();
let sim: Sim;
let media: Media;
let edge: TestEdge;
let listener: Listener;
let video: string;
let tone: string;
let workDir: string;

beforeAll(async () => {
  const dir = await makeTempDir();
  workDir = join(dir, 'work');
  sim = await createSim({ dataDir: join(dir, 'sim'), transcode: 'fast' }, { log: silentLog });
  const config = loadMediaConfig({
    LOG_LEVEL: 'silent',
    MEDIA_TOKEN,
    MEDIA_CACHE_DIR: join(dir, 'cache'),
    MEDIA_WORK_DIR: workDir,
    MEDIA_DRAIN_MS: '0',
    BUNNY_STREAM_URL: sim.streamUrl,
    BUNNY_STORAGE_URL: sim.storageUrl,
    BUNNY_CDN_URL: sim.cdnUrl,
    BUNNY_LIBRARY_ID: String(SIM_DEFAULTS.libraryId),
    BUNNY_STREAM_KEY: SIM_DEFAULTS.streamKey,
    BUNNY_STORAGE_ZONE: SIM_DEFAULTS.storageZone,
    BUNNY_STORAGE_KEY: SIM_DEFAULTS.storageKey,
  });
  media = await createMedia(config, { toolchain: testFfmpeg(), log: silentLog });
  edge = await startEdge({ MEDIA_URL: media.url, MEDIA_TOKEN, MAX_UPLOAD_BYTES: String(MAX_BYTES) });
  listener = await listen(edge.app, { host: '127.0.0.1', port: 0 });
  await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  video = await makeClip(dir);
  tone = await makeTone(dir);
});
afterAll(async () => {
  await listener?.close(1_000);
  await edge?.close();
  await media?.close();
  await sim?.close();
});

const anOwnExercise = async () => (await anExercise(edge.db, { orgId: who.manager.org, durationMs: null })).id;
const sha256 = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
const sourcesOf = (exerciseId: string) =>
  edge.db
    .select()
    .from(exerciseSources)
    .where(eq(exerciseSources.exerciseId, exerciseId))
    .orderBy(desc(exerciseSources.createdAt));
const clipsOf = (exerciseId: string) => edge.db.select().from(cueClips).where(eq(cueClips.exerciseId, exerciseId));

/** A PUT over a socket; without a length, as something that is read while it is sent. */
async function put(path: string, body: Uint8Array<ArrayBuffer> | Readable | undefined, as: Caller = who.manager) {
  return fetch(`${listener.url}${path}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${await tokenFor(as)}` },
    ...(body && { body, duplex: 'half' as const }),
  });
}

const bytesOf = async (path: string) => new Uint8Array(await readFile(path));

describe('a source', () => {
  it('is streamed to storage, measured, kept and reported', async () => {
    const id = await anOwnExercise();
    const response = await put(`/v1/exercises/${id}/source`, createReadStream(video));
    expect(response.status).toBe(200);
    const report = (await response.json()) as { facts: { durationMs: number } };
    const hash = await sha256(video);
    expect(report).toMatchObject({
      sha256: hash,
      facts: { width: 320, height: 180, videoCodec: 'h264' },
      errors: [],
      warnings: [{ code: 'low_resolution', severity: 'warning' }],
    });
    expect(Math.abs(report.facts.durationMs - 2000)).toBeLessThan(50);
    expect(report).not.toHaveProperty('location');
    const location = `zone:assets/orgs/${who.manager.org}/${hash}`;
    expect(await sourcesOf(id)).toMatchObject([
      { sha256: hash, durationMs: report.facts.durationMs, uploadedBy: who.manager.sub },
    ]);
    const stored = await fetch(`${sim.storageUrl}/${SIM_DEFAULTS.storageZone}/${location.slice('zone:'.length)}`, {
      headers: { AccessKey: SIM_DEFAULTS.storageKey },
    });
    expect(
      createHash('sha256')
        .update(new Uint8Array(await stored.arrayBuffer()))
        .digest('hex'),
    ).toBe(hash);
    const exercise = await edge.call('GET', `/v1/exercises/${id}`, { as: who.specialist });
    expect(await exercise.json()).toMatchObject({ source: { sha256: hash, warnings: [{ code: 'low_resolution' }] } });
  });

  it('takes the place of the one before, which stays for what was baked of it', async () => {
    const id = await anOwnExercise();
    const other = await makeClip(await makeTempDir(), { seconds: 1 });
    await put(`/v1/exercises/${id}/source`, await bytesOf(video));
    await put(`/v1/exercises/${id}/source`, await bytesOf(other));
    expect((await sourcesOf(id)).map((row) => row.sha256)).toEqual([await sha256(other), await sha256(video)]);
    const exercise = await edge.call('GET', `/v1/exercises/${id}`, { as: who.manager });
    expect(await exercise.json()).toMatchObject({ source: { sha256: await sha256(other) } });
  });

  it('of the platform goes to the platform’s folder', async () => {
    const { id } = await anExercise(edge.db, { durationMs: null });
    expect((await put(`/v1/exercises/${id}/source`, await bytesOf(video), who.superadmin)).status).toBe(200);
    expect(await sourcesOf(id)).toMatchObject([{ sha256: await sha256(video) }]);
  });

  it.each<[string, () => Promise<Uint8Array<ArrayBuffer>>, string]>([
    ['garbage', async () => new Uint8Array(5000).fill(7), 'source_undecodable'],
    ['half a file', async () => (await bytesOf(video)).slice(0, 3000), 'source_undecodable'],
    ['sound', () => bytesOf(tone), 'source_no_video'],
  ])('that is %s is refused with the findings, and not kept', async (_, body, code) => {
    const id = await anOwnExercise();
    const problem = await problemOf(await put(`/v1/exercises/${id}/source`, await body()));
    expect(problem).toMatchObject({ httpStatus: 422, code, errors: [{ path: 'body', code }] });
    expect(JSON.stringify(problem)).not.toMatch(/\/tmp|ffmpeg|ffprobe/);
    expect(await sourcesOf(id)).toEqual([]);
  });

  it('that is nothing is refused', async () => {
    const id = await anOwnExercise();
    for (const body of [undefined, new Uint8Array()]) {
      const problem = await problemOf(await put(`/v1/exercises/${id}/source`, body));
      expect(problem).toMatchObject({ httpStatus: 422, errors: [{ path: 'body' }] });
    }
  });

  it('of another clinic or of nobody is not even read', async () => {
    const id = await anOwnExercise();
    const before = await sourcesOf(id);
    const slow = () => Readable.from([Buffer.from('first bytes')]);
    expect((await put(`/v1/exercises/${id}/source`, slow(), who.otherManager)).status).toBe(404);
    expect((await put(`/v1/exercises/${id}/source`, slow(), who.specialist)).status).toBe(403);
    expect(await sourcesOf(id)).toEqual(before);
  });
});

describe('the cap on uploads', () => {
  it('refuses a length that is told before a byte is read', async () => {
    const id = await anOwnExercise();
    const call = request(`${listener.url}/v1/exercises/${id}/source`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${await tokenFor(who.manager)}`, 'content-length': MAX_BYTES + 1 },
    });
    call.on('error', () => undefined);
    call.flushHeaders();
    const [response] = await once(call, 'response');
    expect(response.statusCode).toBe(413);
    call.destroy();
  });

  it('breaks off a body that goes on beyond it', async () => {
    const id = await anOwnExercise();
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024, 7);
    const endless = new Readable({
      read() {
        sent += chunk.length;
        this.push(chunk);
      },
    });
    const call = request(`${listener.url}/v1/exercises/${id}/source`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${await tokenFor(who.manager)}` },
    });
    // The rest of the body is not wanted, so that the connection is cut after the answer.
    call.on('error', () => undefined);
    endless.pipe(call);
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(413);
    expect(await json(response)).toMatchObject({ code: 'payload_too_large' });
    call.destroy();
    endless.destroy();
    expect(sent).toBeLessThan(20 * MAX_BYTES);
    expect(await sourcesOf(id)).toEqual([]);
  });
});

it('an upload whose sender goes away ends at once and keeps nothing', async () => {
  const id = await anOwnExercise();
  const call = request(`${listener.url}/v1/exercises/${id}/source`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${await tokenFor(who.manager)}` },
  });
  call.on('error', () => undefined);
  call.write((await bytesOf(video)).slice(0, 5000));
  const ended = async () => (await edge.deps.registry.metrics()).includes('source",status="499"');
  expect(await ended()).toBe(false);
  const jobs = () => readdir(workDir);
  await waitFor(async () => (await jobs()).length > 0, { label: 'the media service to begin' });
  call.destroy();
  await waitFor(ended, { label: 'the end of the upload' });
  await waitFor(async () => (await jobs()).length === 0, { label: 'the media service to clean up' });
  expect(await sourcesOf(id)).toEqual([]);
});

describe('a cue clip', () => {
  const path = (id: string, language: string, name: string) => `/v1/exercises/${id}/cues/${language}/${name}`;

  it('is measured and kept, one for each language and name', async () => {
    const id = await anOwnExercise();
    const first = await put(path(id, 'DE-at', 'count-1'), await bytesOf(tone));
    expect(await first.json()).toMatchObject({ sha256: await sha256(tone), errors: [] });
    const other = await makeTone(await makeTempDir(), { frequencyHz: 880 });
    expect((await put(path(id, 'de-AT', 'count-1'), await bytesOf(other))).status).toBe(200);
    expect((await put(path(id, 'de-AT', 'start'), await bytesOf(tone))).status).toBe(200);
    const kept = (await clipsOf(id)).map(({ language, name, sha256 }) => ({ language, name, sha256 }));
    expect(kept).toHaveLength(2);
    expect(kept).toEqual(
      expect.arrayContaining([
        { language: 'de-AT', name: 'count-1', sha256: await sha256(other) },
        { language: 'de-AT', name: 'start', sha256: await sha256(tone) },
      ]),
    );
  });

  it('without sound is refused and not kept', async () => {
    const id = await anOwnExercise();
    const problem = await problemOf(await put(path(id, 'en', 'start'), await bytesOf(video)));
    expect(problem).toMatchObject({ httpStatus: 422, code: 'source_no_audio' });
    expect(await clipsOf(id)).toEqual([]);
  });

  it.each([
    ['en', 'shout', 'name'],
    ['en', 'count-101', 'name'],
    ['english', 'start', 'language'],
  ])('of %s/%s is refused, naming the field', async (language, name, field) => {
    const id = await anOwnExercise();
    const problem = await problemOf(await put(path(id, language, name), await bytesOf(tone)));
    expect(problem).toMatchObject({ httpStatus: 422, errors: [{ path: field }] });
  });
});

describe('where the media service', () => {
  it.each<[string, () => Record<string, string>]>([
    ['is away', () => ({ MEDIA_URL: `http://${DEAD}` })],
    ['does not know us', () => ({ MEDIA_URL: media.url, MEDIA_TOKEN: 'another-token-for-media' })],
  ])('%s, an upload answers 502 and nothing is kept', async (_, env) => {
    const alone = await startEdge(env());
    try {
      const { id } = await anExercise(alone.db, { durationMs: null });
      const body = await bytesOf(video);
      const problem = await problemOf(
        await alone.call('PUT', `/v1/exercises/${id}/source`, { as: who.superadmin, body }),
      );
      expect(problem).toMatchObject({ httpStatus: 502, code: expect.stringMatching(/^media_un(reach|avail)able$/) });
      expect(await alone.db.select().from(exerciseSources)).toEqual([]);
    } finally {
      await alone.close();
    }
  });
});
