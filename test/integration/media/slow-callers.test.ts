import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { lineStream } from '../../../apps/media/line-stream.ts';
import { parseBody } from '../../../apps/media/parse.ts';
import { onError } from '../../../apps/media/problem.ts';
import type { ComposeLine } from '../../../lib/media/contract.ts';
import { silentLog } from '../../support/log.ts';
import { progressLine } from '../../support/scripted-media.ts';
import { waitFor } from '../../support/wait.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** A work that emits as it is told and ends when it is stopped or told to. */
function aWork() {
  const work = {
    emit: (_: ComposeLine) => {},
    end: () => {},
    stopped: false,
    hungUp: false,
    run: (signal: AbortSignal, emit: (line: ComposeLine) => void) => {
      work.emit = emit;
      signal.addEventListener('abort', () => {
        work.stopped = true;
      });
      return new Promise<ComposeLine>((resolve) => {
        work.end = () => resolve(errorLine);
        signal.addEventListener('abort', () => resolve(errorLine));
      });
    },
  };
  return work;
}
const errorLine: ComposeLine = { type: 'error', code: 'aborted', message: 'The work was stopped.', retryable: true };
const stored = (kind: 'poster' | 'master'): ComposeLine => ({
  ...{ type: 'stored', kind, url: `https://cdn.test/${kind}`, sha256: 'a'.repeat(64), bytes: 1 },
});
const streamOf = (work: ReturnType<typeof aWork>, limits: { heartbeatMs: number; unreadMs: number }) =>
  lineStream({
    ...limits,
    signal: new AbortController().signal,
    hangUp: () => {
      work.hungUp = true;
    },
    work: work.run,
  });

describe('a caller that does not read on', () => {
  it('is given up after a bound, and the work ends', async () => {
    const work = aWork();
    streamOf(work, { heartbeatMs: 2, unreadMs: 200 });
    await waitFor(() => work.stopped && work.hungUp, { label: 'the caller to be given up' });
  });

  it('loses progress that it would not take, and nothing else, so that memory stays bounded', async () => {
    const work = aWork();
    const stream = streamOf(work, { heartbeatMs: 60_000, unreadMs: 60_000 });
    work.emit(stored('poster'));
    for (let at = 0; at < 100_000; at += 1) work.emit(progressLine(at / 1000));
    work.emit(stored('master'));
    work.end();
    const lines = (await text(stream)).trim().split('\n');
    expect(lines.length).toBeLessThan(100);
    const told = lines.map((line) => JSON.parse(line) as ComposeLine).filter(({ type }) => type !== 'progress');
    expect(told).toEqual([stored('poster'), stored('master'), errorLine]);
  });

  it('does not keep the work from its end', async () => {
    const work = aWork();
    const stream = streamOf(work, { heartbeatMs: 1, unreadMs: 60_000 });
    work.end();
    expect((await text(stream)).trim().split('\n').at(-1)).toBe(JSON.stringify(errorLine));
    expect(work.stopped).toBe(false);
  });
});

describe('a caller that drips its request', () => {
  it('is answered at the deadline, may try again, and is hung up on', async () => {
    const app = new Hono().post('/', async (c) => c.json(await parseBody(c, z.looseObject({}), 200)));
    app.onError(onError(silentLog));
    const server = createAdaptorServer({ fetch: app.fetch }) as Server;
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => {
      answer += String(chunk);
    });
    socket.on('error', () => {});
    socket.write('POST / HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{');
    const dripping = setInterval(() => socket.write(' '), 20);
    try {
      await once(socket, 'close');
    } finally {
      clearInterval(dripping);
    }
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"code":"malformed_body"');
    expect(answer).toContain('"retryable":true');
  });
});
