import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import { signCdnUrl } from '../../../lib/bunny/cdn.ts';
import { createStorageClient } from '../../../lib/bunny/storage-client.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningSim, startSim } from './harness.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
let sim: RunningSim;
beforeAll(async () => {
  sim = await startSim();
});
afterAll(() => sim.close());

/** fetch resolves dots in a path before it sends; a raw request does not. */
function raw(base: string, method: string, path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(base);
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on('error', reject).end();
  });
}
const key = { AccessKey: SIM_DEFAULTS.storageKey };
const readKey = { AccessKey: SIM_DEFAULTS.storageReadKey };

describe('the storage zone', () => {
  it('stores, lists, gives back, replaces and deletes a file', async () => {
    await sim.storage.put('renders/one/a b.json', Buffer.from('{"v":1}'), { sha256: sha256('{"v":1}') });
    await sim.storage.put('renders/one/a b.json', Buffer.from('{"v":22}'), { sha256: sha256('{"v":22}') });
    const stat = await sim.storage.stat('renders/one/a b.json');
    expect(stat).toMatchObject({ bytes: 8, sha256: sha256('{"v":22}'), isDirectory: false });
    expect(Math.abs((stat?.changedAt.getTime() ?? 0) - Date.now())).toBeLessThan(5000);
    const got = await sim.storage.get('renders/one/a b.json');
    expect([got.bytes, got.contentType]).toEqual([8, 'application/json']);
    expect(Buffer.concat(await got.stream.toArray()).toString()).toBe('{"v":22}');
    expect((await sim.storage.list('renders')).map((item) => [item.path, item.isDirectory])).toEqual([
      ['renders/one', true],
    ]);
    expect((await sim.storage.list('')).map((item) => item.path)).toContain('renders');
    expect(await sim.storage.delete('renders/one/a b.json')).toBe(true);
    expect(await sim.storage.delete('renders/one/a b.json')).toBe(false);
    await expect(sim.storage.get('renders/one/a b.json')).rejects.toMatchObject({ code: 'not_found' });
    expect(await sim.storage.list('renders/one')).toEqual([]);
  });

  it('refuses bytes that do not have their checksum, and keeps what was there', async () => {
    await sim.storage.put('sum.txt', Buffer.from('right'));
    const put = sim.storage.put('sum.txt', Buffer.from('wrong'), { sha256: sha256('right') });
    await expect(put).rejects.toMatchObject({ code: 'storage_failed', retryable: true });
    expect(await sim.storage.stat('sum.txt')).toMatchObject({ sha256: sha256('right') });
    expect((await sim.log()).requests.filter((each) => each.method === 'PUT' && each.status === 400)).toHaveLength(3);
  });

  it('lets the read-only password get and list, and nothing else', async () => {
    await sim.storage.put('readable.txt', Buffer.from('text'));
    const reader = createStorageClient({
      baseUrl: sim.storageUrl,
      zone: SIM_DEFAULTS.storageZone,
      accessKey: SIM_DEFAULTS.storageReadKey,
    });
    expect(await reader.stat('readable.txt')).toMatchObject({ bytes: 4 });
    await expect(reader.put('readable.txt', Buffer.from('x'))).rejects.toMatchObject({ code: 'bunny_unauthorized' });
    await expect(reader.delete('readable.txt')).rejects.toMatchObject({ code: 'bunny_unauthorized' });
    expect((await raw(sim.storageUrl, 'PUT', '/sim-zone/x', readKey)).status).toBe(403);
  });

  it('answers no key, a wrong key and another zone with the documented 401', async () => {
    for (const [path, headers] of [
      ['/sim-zone/a', {}],
      ['/sim-zone/a', { AccessKey: SIM_DEFAULTS.streamKey }],
      ['/other-zone/a', key],
    ] as const) {
      const { status, body } = await raw(sim.storageUrl, 'GET', path, headers);
      expect([status, JSON.parse(body)]).toEqual([401, { HttpCode: 401, Message: 'Unauthorized' }]);
    }
    expect((await raw(sim.storageUrl, 'HEAD', '/sim-zone/a', key)).status).toBe(401);
  });

  it('lets no path step out of the zone', async () => {
    await sim.storage.put('inside/secret.txt', Buffer.from('x'));
    for (const path of [
      '/sim-zone/../sim-zone/inside/secret.txt',
      '/sim-zone/inside/../inside/secret.txt',
      '/sim-zone/inside/%2e%2e/inside/secret.txt',
      '/sim-zone/inside%2Fsecret.txt',
      '/sim-zone/inside/..%2F..%2F..%2Fetc/passwd',
      '/sim-zone//inside/secret.txt',
      '/sim-zone/inside/a%00b',
      '/sim-zone/%zz',
    ]) {
      expect([400, 401], path).toContain((await raw(sim.storageUrl, 'GET', path, key)).status);
    }
  });

  it('keeps files and directories apart, and deletes a directory with all in it', async () => {
    await sim.storage.put('tree/a/1', Buffer.from('1'));
    await sim.storage.put('tree/b', Buffer.from('2'));
    await expect(sim.storage.put('tree/b/below-a-file', Buffer.from('3'))).rejects.toMatchObject({ retryable: false });
    await expect(sim.storage.put('tree/a', Buffer.from('3'))).rejects.toMatchObject({ retryable: false });
    expect((await raw(sim.storageUrl, 'PUT', '/sim-zone/tree/empty/', key)).status).toBe(201);
    expect((await sim.storage.list('tree')).map((item) => item.path)).toEqual(['tree/a', 'tree/b', 'tree/empty']);
    expect((await raw(sim.storageUrl, 'DELETE', '/sim-zone/', key)).status).toBe(400);
    expect((await raw(sim.storageUrl, 'DELETE', '/sim-zone/tree/', key)).status).toBe(200);
    expect(await sim.storage.list('tree')).toEqual([]);
  });

  it('keeps nothing of an upload that breaks', async () => {
    await new Promise<void>((resolve) => {
      const put = request(`${sim.storageUrl}/sim-zone/half.bin`, {
        method: 'PUT',
        headers: { ...key, 'Content-Length': 100_000 },
      });
      put.on('error', () => resolve());
      put.write(Buffer.alloc(1000), () => put.destroy(new Error('cut')));
    });
    await waitFor(async () => (await sim.log()).requests.some((each) => each.path === '/sim-zone/half.bin'), {
      label: 'the end of the broken upload',
    });
    expect(await sim.storage.stat('half.bin')).toBeUndefined();
    expect(await readdir(join(sim.dataDir, 'incoming'))).toEqual([]);
  });
});

describe('the CDN', () => {
  const text = '0123456789';
  beforeAll(() => sim.storage.put('renders/r/file.txt', Buffer.from(text), { contentType: 'text/plain' }));
  const get = (range?: string, method = 'GET') =>
    fetch(`${sim.cdnUrl}/renders/r/file.txt`, { method, ...(range && { headers: { Range: range } }) });

  it.each([
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=-2', 206, '89', 'bytes 8-9/10'],
    ['bytes=8-100', 206, '89', 'bytes 8-9/10'],
    ['bytes=10-', 416, '', 'bytes */10'],
    ['bytes=-0', 416, '', 'bytes */10'],
    ['bytes=5-2', 200, text, null],
    ['bytes=0-1,4-5', 200, text, null],
    ['lines=0-1', 200, text, null],
  ])('answers %s with %i', async (range, status, body, contentRange) => {
    const answer = await get(range);
    expect([answer.status, await answer.text(), answer.headers.get('content-range')]).toEqual([
      status,
      body,
      contentRange,
    ]);
  });

  it('answers HEAD with the length and no body, and lets any site read', async () => {
    const head = await get(undefined, 'HEAD');
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '10', '']);
    expect(head.headers.get('access-control-allow-origin')).toBe('*');
    expect(head.headers.get('content-type')).toBe('text/plain');
    expect(head.headers.get('accept-ranges')).toBe('bytes');
    expect((await fetch(`${sim.cdnUrl}/renders/r/file.txt`, { method: 'OPTIONS' })).status).toBe(204);
    expect((await fetch(`${sim.cdnUrl}/renders/r/file.txt`, { method: 'POST' })).status).toBe(405);
  });

  it('serves the public part of the zone only', async () => {
    await sim.storage.put('assets/platform/source', Buffer.from('private'));
    await sim.storage.put('segments/s', Buffer.from('private'));
    for (const path of [
      '/assets/platform/source',
      '/segments/s',
      '/renders/../segments/s',
      '/renders/%2e%2e/segments/s',
      '/renders%2F..%2Fsegments%2Fs',
      '//segments/s',
    ]) {
      expect((await raw(sim.cdnUrl, 'GET', path)).status, path).toBe(404);
    }
  });

  it('admits only signed addresses where a token key is set', async () => {
    const cdnTokenKey = 'cdn-token-key-0123456789';
    const guarded = await startSim({ cdnTokenKey });
    try {
      const { guid } = await guarded.stream.create({ title: 'guarded' });
      await guarded.stream.upload(guid, await makeClip(await makeTempDir()));
      await guarded.ended(guid);
      const url = `${guarded.cdnUrl}/${guid}/playlist.m3u8`;
      expect((await fetch(url)).status).toBe(403);
      const expires = Math.floor(Date.now() / 1000) + 60;
      const signed = signCdnUrl(url, { key: cdnTokenKey, expires });
      const playlist = await fetch(signed);
      expect(playlist.status).toBe(200);
      const variant = (await playlist.text()).split('\n').find((line) => line.endsWith('video.m3u8')) ?? '';
      expect((await fetch(new URL(variant, signed))).status).toBe(200);
      expect((await fetch(signCdnUrl(url, { key: cdnTokenKey, expires: expires - 120 }))).status).toBe(403);
      expect((await fetch(signed.replace(`/${guid}/playlist`, '/renders/x/playlist'))).status).toBe(403);
    } finally {
      await guarded.close();
    }
    const open = signCdnUrl(`${sim.cdnUrl}/renders/r/file.txt`, { key: 'whatever-key', expires: 1 });
    expect((await fetch(open)).status).toBe(200);
  });
});
