import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import { createStreamClient } from '../../../lib/bunny/stream-client.ts';
import { tusSignature } from '../../../lib/bunny/tus.ts';
import { uploadVideo } from '../../../lib/bunny/video-upload.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
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

/** Passes bytes on, and cuts the first connection that sends more than `bytes`. */
async function startCuttingProxy(targetUrl: string, bytes: number) {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let sent = 0;
    client.on('data', (chunk: Buffer) => {
      sent += chunk.length;
      if (cuts === 0 && sent > bytes) {
        cuts += 1;
        client.destroy();
      }
    });
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: () => cuts,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('uploadVideo of a large file', () => {
  let file: string;
  const client = (at: RunningSim) =>
    createStreamClient({
      baseUrl: at.streamUrl,
      libraryId: SIM_DEFAULTS.libraryId,
      apiKey: SIM_DEFAULTS.streamKey,
      timeoutMs: 2000,
      chunkBytes: 16 * 1024,
    });
  const patches = async () => (await sim.log()).requests.filter((each) => each.method === 'PATCH').length;
  beforeAll(async () => {
    file = await makeClip(await makeTempDir());
  });

  it('goes up in chunks and ends whole', async () => {
    const { guid } = await sim.stream.create({ title: 'large' });
    const before = await patches();
    expect(await uploadVideo(client(sim), guid, file, { resumableAboveBytes: 0 })).toEqual({ outcome: 'uploaded' });
    const ended = await sim.ended(guid);
    expect(ended.originalSha256).toBe(createHash('sha256').update(clip).digest('hex'));
    await waitFor(async () => (await patches()) - before === Math.ceil(clip.length / (16 * 1024)), {
      label: 'one request per chunk',
    });
  });

  it('rides out refusals, and takes a lost last answer for done', async () => {
    await sim.faults({
      rate5xx: { rate: 1, count: 2, match: 'PATCH' },
      rate429: { rate: 1, count: 1, match: 'POST /tusupload' },
      retryAfterSeconds: 0,
      acceptThenTimeout: { upload: 1, holdMs: 50 },
    });
    const { guid } = await sim.stream.create({ title: 'large and stormy' });
    expect(await uploadVideo(client(sim), guid, file, { resumableAboveBytes: 0 })).toMatchObject({
      outcome: 'already-uploaded',
    });
    expect((await sim.ended(guid)).state).toBe('finished');
    await fetch(`${sim.streamUrl}/sim/faults`, { method: 'DELETE' });
  });

  it('goes on where a broken connection stopped it', async () => {
    const proxy = await startCuttingProxy(sim.streamUrl, Math.floor(clip.length / 2));
    try {
      const { guid } = await sim.stream.create({ title: 'cut' });
      const cut = createStreamClient({
        baseUrl: proxy.url,
        libraryId: SIM_DEFAULTS.libraryId,
        apiKey: SIM_DEFAULTS.streamKey,
        timeoutMs: 2000,
      });
      expect(await uploadVideo(cut, guid, file, { resumableAboveBytes: 0 })).toEqual({ outcome: 'uploaded' });
      expect(proxy.cuts()).toBe(1);
      expect((await sim.ended(guid)).state).toBe('finished');
    } finally {
      await proxy.close();
    }
  });

  it('needs a new video where this one is gone or failed', async () => {
    expect(await uploadVideo(client(sim), 'gone', file, { resumableAboveBytes: 0 })).toMatchObject({
      outcome: 'new-video-needed',
    });
    const { guid } = await sim.stream.create({ title: 'failed' });
    await sim.stream.upload(guid, Buffer.from('garbage'));
    await sim.ended(guid);
    expect(await uploadVideo(client(sim), guid, file, { resumableAboveBytes: 0 })).toMatchObject({
      outcome: 'new-video-needed',
      video: { state: 'failed' },
    });
  });
});
