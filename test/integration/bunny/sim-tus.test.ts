import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import { tusSignature } from '../../../lib/bunny/tus.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { type RunningSim, startSim } from './harness.ts';

let sim: RunningSim;
let clip: Buffer;
beforeAll(async () => {
  sim = await startSim();
  clip = await readFile(await makeClip(await makeTempDir()));
});
afterAll(() => sim.close());

const inAnHour = () => Math.floor(Date.now() / 1000) + 3600;
function signed(guid: string, expires = inAnHour()): Record<string, string> {
  return {
    'Tus-Resumable': '1.0.0',
    LibraryId: String(SIM_DEFAULTS.libraryId),
    VideoId: guid,
    AuthorizationExpire: String(expires),
    AuthorizationSignature: tusSignature(SIM_DEFAULTS.libraryId, SIM_DEFAULTS.streamKey, expires, guid),
  };
}
const begin = (headers: Record<string, string>, length = clip.length, at = sim) =>
  fetch(`${at.streamUrl}/tusupload`, { method: 'POST', headers: { ...headers, 'Upload-Length': String(length) } });
const send = (url: URL | string, headers: Record<string, string>, offset: number, body: Buffer) =>
  fetch(url, {
    method: 'PATCH',
    headers: { ...headers, 'Upload-Offset': String(offset), 'Content-Type': 'application/offset+octet-stream' },
    body,
  });
const locate = (answer: Response, at = sim) => new URL(answer.headers.get('location') ?? '', at.streamUrl);

describe('a TUS upload', () => {
  it('is signed with a plain SHA-256 as documented', () => {
    expect(tusSignature(133, 'api-key', 1_700_000_000, '657bb740-a71b-4529-a012-528021c31a92')).toBe(
      'ee45d5293ad5454fa3059a333c2239bcf2eb25860e77433e70983c57f80afdc4',
    );
  });

  it('goes on in parts, tells its offset, survives a restart, and ends in a finished video', async () => {
    const first = await startSim();
    const { guid } = await first.stream.create({ title: 'resumable' });
    const headers = signed(guid);
    const created = await begin(headers, clip.length, first);
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toMatch(/^\/tusupload\/[0-9a-f]+$/);
    expect(created.headers.get('upload-expires')).toBeTruthy();
    const half = Math.floor(clip.length / 2);
    const patched = await send(locate(created, first), headers, 0, clip.subarray(0, half));
    expect([patched.status, patched.headers.get('upload-offset')]).toEqual([204, String(half)]);
    expect((await first.state(guid)).state).toBe('created');
    await first.close();

    const second = await startSim({ dataDir: first.dataDir });
    try {
      const url = locate(created, second);
      const head = await fetch(url, { method: 'HEAD', headers });
      expect([head.status, head.headers.get('upload-offset')]).toEqual([200, String(half)]);
      expect((await send(url, headers, 0, clip.subarray(0, 10))).status).toBe(409);
      // Signed anew before the old signature expired.
      expect((await send(url, signed(guid, inAnHour() + 60), half, clip.subarray(half))).status).toBe(204);
      expect((await second.ended(guid)).state).toBe('finished');
      expect((await fetch(url, { method: 'HEAD', headers })).status).toBe(404);
      expect((await begin(headers, clip.length, second)).status).toBe(400);
    } finally {
      await second.close();
    }
  });

  it('is refused with an empty 401 where the signature, the library or the video is wrong or missing', async () => {
    const { guid } = await sim.stream.create({ title: 'unsigned' });
    const good = signed(guid);
    const without = (name: string) => Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));
    for (const headers of [
      { ...good, AuthorizationSignature: 'ab'.repeat(32) },
      { ...good, VideoId: '657bb740-a71b-4529-a012-528021c31a92' },
      without('LibraryId'),
      without('VideoId'),
    ]) {
      const answer = await begin(headers);
      expect([answer.status, await answer.text()]).toEqual([401, '']);
    }
  });

  it('expires: 400 with the old signature, 404 with a new one', async () => {
    const { guid } = await sim.stream.create({ title: 'expiring' });
    const soon = signed(guid, Math.floor(Date.now() / 1000) + 1);
    const url = locate(await begin(soon));
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const old = await send(url, soon, 0, clip);
    expect([old.status, await old.text()]).toEqual([400, 'Invalid expiry time, cannot be in the past.']);
    expect((await fetch(url, { method: 'HEAD', headers: signed(guid) })).status).toBe(404);
    expect((await sim.state(guid)).state).toBe('created');
  });

  it('takes no more bytes than announced, and no other content type', async () => {
    const { guid } = await sim.stream.create({ title: 'too much' });
    const headers = signed(guid);
    const url = locate(await begin(headers, 10));
    expect((await send(url, headers, 0, Buffer.alloc(11))).status).toBe(413);
    expect(
      (await fetch(url, { method: 'PATCH', headers: { ...headers, 'Upload-Offset': '0' }, body: 'x' })).status,
    ).toBe(415);
    expect((await begin({ ...headers, 'Tus-Resumable': '0.2' })).status).toBe(412);
    expect((await begin(headers, -1)).status).toBe(400);
  });
});
