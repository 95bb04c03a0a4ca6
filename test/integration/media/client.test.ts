import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from 'vitest';
import { createMediaClient } from '../../../lib/media/client.ts';
import type { ComposeLine } from '../../../lib/media/contract.ts';
import { MEDIA_TOKEN, requestFor } from './harness.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A media service that answers as told. */
async function serve(listener: RequestListener) {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return createMediaClient({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: MEDIA_TOKEN,
  });
}

const request = requestFor({ sha256: 'a'.repeat(64), location: 'zone:assets/platform/x' });
const progress = (percent: number): ComposeLine => ({ type: 'progress', stage: 'segments', percent, etaMs: null });
const failed: ComposeLine = {
  type: 'error',
  code: 'source_undecodable',
  message: 'Cannot be decoded.',
  retryable: false,
};
/** Silence is for the test that is about it: a busy machine may be slow to answer. */
const options = (silenceMs = 10_000) => ({ signal: new AbortController().signal, silenceMs });

/** Runs a full collection, which Node offers only behind a flag. */
setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('the answer to a compose', () => {
  it('is read line by line, wherever the pieces are cut', async () => {
    const text = [progress(1), progress(2), failed].map((line) => `${JSON.stringify(line)}\n`).join('');
    const client = await serve((_, response) => {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 7) response.write(bytes.subarray(at, at + 7));
      response.end();
    });
    const lines: ComposeLine[] = [];
    const answer = client.composeRender(request, { ...options(), onLine: (line) => lines.push(line) });
    await expect(answer).rejects.toMatchObject({
      code: 'source_undecodable',
      message: 'Cannot be decoded.',
      retryable: false,
    });
    expect(lines).toEqual([progress(1), progress(2), failed]);
  });

  it('is a failure of the protocol when it ends without its last line, or is no line at all', async () => {
    for (const body of ['', `${JSON.stringify(progress(50))}\n`, '<html>', '{"type":"done"}\n', '{"type":"song"}\n']) {
      const client = await serve((_, response) => response.end(body));
      await expect(client.composeRender(request, options())).rejects.toMatchObject({
        code: 'media_protocol',
        retryable: true,
      });
      server?.close();
    }
  });

  it('is given up when it goes silent, before or after its first line', async () => {
    for (const first of ['', `${JSON.stringify(progress(1))}\n`]) {
      const client = await serve((_, response) => {
        if (first) response.write(first);
      });
      await expect(client.composeRender(request, options(300))).rejects.toMatchObject({ code: 'media_silent' });
      server?.closeAllConnections();
    }
  });

  it('that breaks off on the wire means that the service is not available', async () => {
    const client = await serve((_, response) => {
      response.write(`${JSON.stringify(progress(1))}\n`, () => response.destroy());
    });
    await expect(client.composeRender(request, options())).rejects.toMatchObject({
      code: 'media_unavailable',
      retryable: true,
    });
    server?.close();
    await expect(client.composeRender(request, options())).rejects.toMatchObject({ code: 'media_unreachable' });
  });

  it('keeps the time after which to come back, from a proxy too', async () => {
    const refusals: [number, string, string, number | undefined][] = [
      [429, JSON.stringify({ code: 'media_busy' }), 'media_busy', 7_000],
      [503, JSON.stringify({ code: 'media_draining' }), 'media_draining', 7_000],
      [429, 'slow down', 'media_busy', 7_000],
      [503, '', 'media_draining', 7_000],
      [502, '<html>', 'media_unavailable', undefined],
      [404, '', 'media_protocol', undefined],
    ];
    for (const [status, body, code, retryAfterMs] of refusals) {
      const client = await serve((_, response) => response.writeHead(status, { 'retry-after': '7' }).end(body));
      await expect(client.composeRender(request, options())).rejects.toMatchObject({ code, retryAfterMs });
      server?.close();
    }
  });

  it('ends when the caller wants no more, garbage collected or not, and the service sees it', async () => {
    let seen: Promise<unknown> | undefined;
    const client = await serve((_, response) => {
      seen = once(response, 'close');
      const timer = setInterval(() => response.write(`${JSON.stringify(progress(1))}\n`), 5);
      response.once('close', () => clearInterval(timer));
    });
    const controller = new AbortController();
    let lines = 0;
    const answer = client.composeRender(request, {
      ...{ signal: controller.signal, silenceMs: 5_000 },
      onLine: () => {
        lines += 1;
        collectGarbage();
        if (lines === 10) controller.abort();
      },
    });
    await expect(answer).rejects.toMatchObject({ code: 'aborted' });
    await seen;
    expect(lines).toBeLessThan(20);
  });

  it('ends at once when the caller wants no more', async () => {
    const controller = new AbortController();
    const client = await serve((_, response) => response.write(`${JSON.stringify(progress(1))}\n`));
    const answer = client.composeRender(request, {
      signal: controller.signal,
      silenceMs: 10_000,
      onLine: () => controller.abort(),
    });
    await expect(answer).rejects.toMatchObject({ code: 'aborted' });
    await expect(client.composeRender(request, { signal: controller.signal, silenceMs: 10_000 })).rejects.toMatchObject(
      {
        code: 'aborted',
      },
    );
  });
});
