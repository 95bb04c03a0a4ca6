import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createStorageClient } from '../../../lib/bunny/storage-client.ts';
import { createStreamClient } from '../../../lib/bunny/stream-client.ts';
import { createVideo, uploadVideo } from '../../../lib/bunny/video-upload.ts';
import { AppError } from '../../../lib/errors.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

let server: Server;
let baseUrl: string;
let folder: string;
/** Answers in order; the last one stays. */
let script: Answer[];
let seen: { method: string; url: string; headers: IncomingMessage['headers'] }[];

beforeEach(async () => {
  script = [];
  seen = [];
  folder = await mkdtemp(join(tmpdir(), 'bunny-clients-'));
  server = createServer((request, response) => {
    seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers });
    const answer = script.length > 1 ? script.shift() : script[0];
    if (!answer) throw new Error('nothing scripted');
    // A request that its client cuts is what some of these tests are about.
    Promise.resolve(answer(request, response)).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

const says =
  (status: number, body: unknown = '', headers: Record<string, string> = {}): Answer =>
  async (request, response) => {
    await buffer(request);
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const cuts: Answer = (request) => void request.socket.destroy();
const silent: Answer = () => {};

const stream = (timeoutMs = 2000) => createStreamClient({ baseUrl, libraryId: 133, apiKey: 'key', timeoutMs });
const storage = (timeoutMs = 2000) => createStorageClient({ baseUrl, zone: 'zone', accessKey: 'key', timeoutMs });
const video = (fields: Record<string, unknown> = {}) => ({ guid: 'g', title: 't', status: 0, ...fields });
const page = (...items: unknown[]) => ({ totalItems: items.length, currentPage: 1, itemsPerPage: 1000, items });
const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');

describe('what Bunny answers becomes', () => {
  it.each([
    [
      '401 in PascalCase',
      says(401, { Success: false, Message: 'Authentication has been denied' }),
      'bunny_unauthorized',
      false,
    ],
    ['403 in camelCase', says(403, { success: false, message: 'no', statusCode: 403 }), 'bunny_unauthorized', false],
    ['404 with an empty body', says(404), 'bunny_not_found', false],
    ['400 in plain text', says(400, 'bad'), 'bunny_refused', false],
    ['422', says(422, { success: false, message: 'no', statusCode: 422 }), 'bunny_refused', false],
    ['a redirect', says(302, '', { location: 'http://elsewhere.invalid/' }), 'bunny_unavailable', true],
    ['500 in HTML', says(500, '<html>'), 'bunny_unavailable', true],
    ['a cut connection', cuts, 'bunny_unavailable', true],
    ['silence', silent, 'bunny_unavailable', true],
    ['success: false behind a 200', says(200, { Success: false, StatusCode: 404 }), 'bunny_not_found', false],
    ['a 200 without the model', says(200, 'OK'), 'bunny_unavailable', true],
  ])('%s → an error of ours', async (_, answer, code, retryable) => {
    script = [answer];
    await expect(stream(150).create({ title: 't' })).rejects.toMatchObject({ name: 'AppError', code, retryable });
    expect(seen).toHaveLength(1);
  });

  it('keeps the access key out of what is logged', async () => {
    script = [says(500)];
    const client = createStreamClient({ baseUrl, libraryId: 1, apiKey: 'very-secret-key' });
    const error = await client.create({ title: 't' }).catch((thrown: Error) => thrown);
    expect(JSON.stringify(error) + (error as Error).stack).not.toContain('very-secret-key');
  });

  it('names an abort an abort, and stops waiting at once', async () => {
    script = [silent];
    const started = Date.now();
    const call = stream(20_000).get('g', { signal: AbortSignal.timeout(50) });
    await expect(call).rejects.toMatchObject({ code: 'aborted' });
    expect(Date.now() - started).toBeLessThan(2000);
  });

  it('refuses an empty title and one of 256 characters without asking', async () => {
    await expect(stream().create({ title: '' })).rejects.toMatchObject({ code: 'bunny_refused' });
    await expect(stream().create({ title: 'x'.repeat(256) })).rejects.toMatchObject({ code: 'bunny_refused' });
    expect(seen).toHaveLength(0);
  });
});

describe('the stream client', () => {
  it('repeats what is safe to repeat, three times at most', async () => {
    script = [says(503), cuts, says(200, video({ length: 7 }))];
    expect((await stream().get('g')).length).toBe(7);
    expect(seen).toHaveLength(3);
    script = [says(503)];
    await expect(stream().get('g')).rejects.toMatchObject({ code: 'bunny_unavailable' });
    expect(seen).toHaveLength(6);
  });

  it('waits as long as Retry-After asks, and hands a long wait to the caller', async () => {
    script = [says(429, '', { 'retry-after': '1' }), says(200, video())];
    const started = Date.now();
    await stream().get('g');
    expect(Date.now() - started).toBeGreaterThanOrEqual(990);
    script = [says(429, '', { 'retry-after': '120' })];
    await expect(stream().get('g')).rejects.toMatchObject({ retryable: true, retryAfterMs: 120_000 });
    expect(seen).toHaveLength(3);
    script = [says(503, '', { 'retry-after': new Date(Date.now() + 120_000).toUTCString() })];
    const error = (await stream()
      .get('g')
      .catch((thrown: unknown) => thrown)) as { retryAfterMs: number };
    expect(error.retryAfterMs).toBeGreaterThan(110_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(120_000);
  });

  it('lists every page, each video once, and steps over an item it cannot read', async () => {
    const pageOf = (...items: unknown[]) => says(200, { totalItems: 5, itemsPerPage: 2, items });
    script = [
      pageOf(video({ guid: 'a' }), video({ guid: 'b' })),
      pageOf(video({ guid: 'b' }), { nonsense: true }),
      pageOf(video({ guid: 'c' })),
    ];
    const guids: string[] = [];
    for await (const each of stream().list({ search: 'x y' })) guids.push(each.guid);
    expect(guids).toEqual(['a', 'b', 'c']);
    expect(seen.map((request) => new URL(request.url, baseUrl).searchParams.get('page'))).toEqual(['1', '2', '3']);
    expect(new URL(seen[0]?.url ?? '', baseUrl).searchParams.get('search')).toBe('x y');
  });

  it('says whether a deleted video was there', async () => {
    script = [says(200, { success: true }), says(404)];
    expect(await stream().delete('g')).toBe(true);
    expect(await stream().delete('g')).toBe(false);
  });

  it('sends a file with its length, and an empty one too', async () => {
    const bodies: Buffer[] = [];
    script = [
      async (request, response) => {
        bodies.push(await buffer(request));
        response.end('{"success":true,"message":"OK"}');
      },
    ];
    const file = join(folder, 'video.mp4');
    await writeFile(file, Buffer.alloc(300_000, 7));
    await stream().upload('g', file);
    await writeFile(file, '');
    await stream().upload('g', file);
    expect(seen.map((request) => request.headers['content-length'])).toEqual(['300000', '0']);
    expect(bodies.map((body) => body.length)).toEqual([300_000, 0]);
  });

  it('holds no more of an upload in memory than is on its way', async () => {
    script = [
      (request, response) => {
        request.resume().on('end', () => response.end('{"success":true}'));
      },
    ];
    const file = join(folder, 'large');
    await writeFile(file, '');
    await truncate(file, 200_000_000);
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }, 10);
    await stream().upload('g', file);
    clearInterval(timer);
    expect(most).toBeLessThan(80_000_000);
  });

  it('lets an upload take longer than its timeout as long as bytes move', async () => {
    script = [says(200, { success: true })];
    async function* slow() {
      for (let i = 0; i < 6; i += 1) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        yield Buffer.from('x');
      }
    }
    await stream(300).upload('g', { stream: slow(), bytes: 6 });
  });

  it("tells a failure of the caller's own source from one of Bunny", async () => {
    script = [says(200, { success: true })];
    async function* tooLong() {
      yield Buffer.from('x');
      throw new AppError('payload_too_large');
    }
    await expect(stream().upload('g', { stream: tooLong() })).rejects.toMatchObject({ code: 'payload_too_large' });
    await expect(stream().upload('g', join(folder, 'missing'))).rejects.toMatchObject({ code: 'internal' });
  });

  it('takes an existing collection of exactly that name, and makes it otherwise', async () => {
    script = [
      says(200, page({ guid: 'b', name: 'Org 1' }, { guid: 'c', name: 'Org 12' }, { guid: 'a', name: 'Org 1' })),
    ];
    expect((await stream().ensureCollection('Org 1')).guid).toBe('a');
    script = [says(200, page()), says(200, { guid: 'n', name: 'New' }), says(200, page())];
    expect((await stream().ensureCollection('New')).guid).toBe('n');
  });
});

describe('createVideo', () => {
  const twin = video({ guid: 'twin', title: 'recipe-1' });

  it('finds the video of a create that was accepted but never answered', async () => {
    const others = [video({ guid: 'x', title: 'recipe-12' }), video({ guid: 'old', title: 'recipe-1', status: 4 })];
    script = [silent, says(200, page(...others, twin))];
    const got = await createVideo(stream(150), { title: 'recipe-1' });
    expect(got).toMatchObject({ found: true, video: { guid: 'twin' } });
    expect(seen.filter((request) => request.method === 'POST')).toHaveLength(1);
  });

  it('creates again where nothing was made', async () => {
    script = [says(500), says(200, page()), says(200, twin)];
    expect(await createVideo(stream(), { title: 'recipe-1' })).toMatchObject({ found: false, video: { guid: 'twin' } });
  });

  it('walks through the library where Bunny does not search', async () => {
    script = [cuts, says(400, { success: false, message: 'Search is not available' }), says(200, page(twin))];
    expect((await createVideo(stream(), { title: 'recipe-1' })).found).toBe(true);
    expect(seen.at(-1)?.url).not.toContain('search');
  });

  it('makes nothing more where it cannot find out', async () => {
    script = [cuts, says(503)];
    await expect(createVideo(stream(), { title: 'recipe-1' })).rejects.toMatchObject({ code: 'bunny_unavailable' });
    expect(seen.filter((request) => request.method === 'POST')).toHaveLength(1);
  });

  it('gives up at once where the key is wrong', async () => {
    script = [says(401)];
    await expect(createVideo(stream(), { title: 'recipe-1' })).rejects.toMatchObject({ code: 'bunny_unauthorized' });
    expect(seen).toHaveLength(1);
  });
});

describe('uploadVideo', () => {
  const already = says(400, { success: false, message: 'The requested video was already uploaded' });
  const upload = (client = stream()) => uploadVideo(client, 'g', Buffer.from('bytes'));

  it.each([1, 2, 3, 4])('takes "already uploaded" for done where the status is %i', async (status) => {
    script = [already, says(200, video({ status }))];
    expect(await upload()).toMatchObject({ outcome: 'already-uploaded' });
  });

  it.each([5, 6])('asks for a new video where the status is %i', async (status) => {
    script = [already, says(200, video({ status }))];
    expect(await upload()).toMatchObject({ outcome: 'new-video-needed', video: { state: 'failed' } });
  });

  it('sends the bytes again where the video is still empty', async () => {
    script = [cuts, says(200, video()), says(200, { success: true })];
    expect(await upload()).toEqual({ outcome: 'uploaded' });
    expect(seen.map((request) => request.method)).toEqual(['PUT', 'GET', 'PUT']);
  });

  it('believes a PUT whose answer was lost once Bunny shows the bytes', async () => {
    script = [silent, says(200, video({ status: 2 }))];
    expect(await upload(stream(150))).toMatchObject({ outcome: 'already-uploaded' });
    expect(seen.map((request) => request.method)).toEqual(['PUT', 'GET']);
  });

  it('asks for a new video where this one has vanished', async () => {
    script = [says(404)];
    expect(await upload()).toEqual({ outcome: 'new-video-needed', video: undefined });
    script = [cuts, says(404)];
    expect(await upload()).toEqual({ outcome: 'new-video-needed', video: undefined });
  });

  it('does not send a stream twice', async () => {
    script = [cuts, says(200, video())];
    const once = (async function* () {
      yield Buffer.from('x');
    })();
    await expect(uploadVideo(stream(), 'g', { stream: once, bytes: 1 })).rejects.toMatchObject({
      code: 'bunny_unavailable',
    });
  });
});

describe('the storage client', () => {
  it('sends an upper-case checksum, the content type and the exact length', async () => {
    script = [says(201, { HttpCode: 201, Message: 'File uploaded.' })];
    await storage().put('renders/a b.json', Buffer.from('{}'), {
      sha256: sha256('{}'),
      contentType: 'application/json',
    });
    expect(seen[0]).toMatchObject({ method: 'PUT', url: '/zone/renders/a%20b.json' });
    expect(seen[0]?.headers).toMatchObject({
      checksum: sha256('{}').toUpperCase(),
      'content-type': 'application/json',
      'content-length': '2',
    });
  });

  it.each([
    ['the busy 400', says(400, { HttpCode: 400, Message: 'Unable to process request' })],
    ['429', says(429)],
    ['a checksum mismatch', says(400, [{ HttpCode: 400, Message: 'Checksum mismatch' }])],
    ['a cut connection', cuts],
  ])('tries again after %s', async (_, answer) => {
    script = [answer, says(201)];
    await storage().put('a', Buffer.from('x'));
    expect(seen).toHaveLength(2);
  });

  it('does not try again after another 400 or a 401', async () => {
    script = [says(400, { HttpCode: 400, Message: 'Unable to upload file' })];
    await expect(storage().put('a', Buffer.from('x'))).rejects.toMatchObject({
      code: 'storage_failed',
      retryable: false,
    });
    script = [says(401, { HttpCode: 401, Message: 'Unauthorized' })];
    await expect(storage().get('a')).rejects.toMatchObject({ code: 'bunny_unauthorized' });
    expect(seen).toHaveLength(2);
  });

  it('never lets a bad path reach the wire', async () => {
    for (const path of ['', 'dir/', '../x', '/x']) {
      await expect(storage().delete(path)).rejects.toMatchObject({ code: 'storage_failed' });
      await expect(storage().stat(path)).rejects.toMatchObject({ code: 'storage_failed' });
    }
    expect(seen).toHaveLength(0);
  });

  it('fetches a file whole or not at all, and again where the connection broke half-way', async () => {
    const file = join(folder, 'got');
    const half: Answer = (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('12345', () => response.destroy());
    };
    script = [half, says(200, '1234567890')];
    const got = await storage().getToFile('a', file, { maxBytes: 100, sha256: sha256('1234567890') });
    expect(got).toEqual({ bytes: 10, sha256: sha256('1234567890') });
    expect(await readFile(file, 'utf8')).toBe('1234567890');
    script = [half];
    await expect(storage().getToFile('a', join(folder, 'never'), { maxBytes: 100 })).rejects.toMatchObject({
      code: 'storage_failed',
      retryable: true,
    });
    expect(await readdir(folder)).toEqual(['got']);
  });

  it('fetches hurt bytes again, and calls bytes that stay wrong corrupt', async () => {
    const get = () => storage().getToFile('a', join(folder, 'got'), { maxBytes: 100, sha256: sha256('good') });
    script = [says(200, 'goof'), says(200, 'good')];
    expect((await get()).bytes).toBe(4);
    script = [says(200, 'evil')];
    await expect(get()).rejects.toMatchObject({ code: 'asset_corrupt', retryable: false });
    expect(seen).toHaveLength(4);
  });

  it('stops at the cap, whether the length is announced or not', async () => {
    const big = 'x'.repeat(200_000);
    script = [says(200, big, { 'content-length': String(big.length) })];
    const get = () => storage().getToFile('a', join(folder, 'got'), { maxBytes: 1000 });
    await expect(get()).rejects.toMatchObject({ code: 'source_too_large' });
    script = [says(200, big, { 'transfer-encoding': 'chunked' })];
    await expect(get()).rejects.toMatchObject({ code: 'source_too_large' });
    expect(await readdir(folder)).toEqual([]);
  });

  it('reads a listing, with or without checksums, and finds one file in it', async () => {
    const item = { ObjectName: 'a.mp4', Length: 5, IsDirectory: false, LastChanged: '2017-03-10T03:06:48.203' };
    script = [says(200, [item, { ...item, ObjectName: 'b', IsDirectory: true, Checksum: null }])];
    expect(await storage().stat('renders/a.mp4')).toEqual({
      path: 'renders/a.mp4',
      isDirectory: false,
      bytes: 5,
      sha256: undefined,
      changedAt: new Date('2017-03-10T03:06:48.203Z'),
    });
    expect(await storage().stat('renders/b')).toBeUndefined();
    expect(seen[0]?.url).toBe('/zone/renders/');
    script = [says(404)];
    expect(await storage().list('nowhere')).toEqual([]);
  });
});
