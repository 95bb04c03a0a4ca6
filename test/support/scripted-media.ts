import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer, json } from 'node:stream/consumers';
import type { AssetAnswer, Capacity, ComposeLine, ComposeRequest, VideoStatus } from '../../lib/media/contract.ts';

/** One compose call, to be answered by the test. */
export interface ComposeCall {
  request: ComposeRequest;
  /** Sends a line of the NDJSON answer. */
  line(line: ComposeLine): void;
  end(): void;
  /** Answers with a problem instead of a stream. */
  refuse(status: number, code: string, headers?: Record<string, string>): void;
  /** Cuts the connection. */
  cut(): void;
  /** Resolves when the caller has gone away. */
  gone: Promise<void>;
}

export interface ScriptedMedia {
  url: string;
  token: string;
  calls: ComposeCall[];
  /** Calls with a wrong token. */
  refused: number;
  /** What GET /capacity answers. */
  capacity: Capacity;
  /** Takes requests and answers none. */
  hangs: boolean;
  /** How each call is answered; by default it succeeds at once. */
  script: (call: ComposeCall, nth: number) => void;
  /** Uploads received, as their query; each is answered as a stored file. */
  uploads: string[];
  /** What is said of a video; unknown ones are missing. */
  videos: Map<string, Partial<VideoStatus>>;
  close(): Promise<void>;
}

const REPORT: AssetAnswer['report'] = {
  facts: {
    durationMs: 1_000,
    frames: 30,
    width: 320,
    height: 240,
    frameRate: 30,
    variableFrameRate: false,
    videoCodec: 'h264',
    audioCodec: null,
    container: 'mp4',
  },
  errors: [],
  warnings: [],
};

export const guidOf = (request: Pick<ComposeRequest, 'renderId'>) => `video-${request.renderId}`;

export const doneLine = (
  request: ComposeRequest,
  change: Partial<ComposeLine & { type: 'done' }> = {},
): ComposeLine => ({
  type: 'done',
  masterSha256: 'b'.repeat(64),
  videoGuid: guidOf(request),
  collectionId: null,
  durationMs: 10_000,
  manifestUrl: `https://cdn.test/renders/${request.recipeHash}/manifest.json`,
  captionsUrl: null,
  posterUrl: `https://cdn.test/renders/${request.recipeHash}/poster.jpg`,
  baselines: [],
  warnings: [],
  segments: { encoded: 3, reused: 1 },
  resumed: false,
  ...change,
});

export const progressLine = (percent: number): ComposeLine => ({
  type: 'progress',
  stage: 'segments',
  percent,
  etaMs: null,
});

export const videoLine = (request: ComposeRequest): ComposeLine => ({
  type: 'video',
  guid: guidOf(request),
  masterSha256: 'b'.repeat(64),
  collectionId: null,
});

/**
 * A media service that bakes nothing and answers as the test says, over real sockets and the real wire format: for
 * what cannot be had from a real one on demand, such as silence at the right moment. Bakes succeed at once by default.
 */
export async function startScriptedMedia({ port = 0, token = 'scripted-media-token' } = {}): Promise<ScriptedMedia> {
  const media: ScriptedMedia = {
    url: '',
    token,
    calls: [],
    refused: 0,
    hangs: false,
    capacity: { instance: randomUUID(), slots: 100, busy: 0, draining: false },
    script: (call) => {
      call.line(videoLine(call.request));
      call.line(doneLine(call.request));
      call.end();
    },
    uploads: [],
    videos: new Map(),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };

  const compose = (request: ComposeRequest, response: ServerResponse) => {
    const start = () => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    };
    const call: ComposeCall = {
      request,
      line: (line) => {
        start();
        response.write(`${JSON.stringify(line)}\n`);
      },
      end: () => {
        start();
        response.end();
      },
      refuse: (status, code, headers = {}) =>
        response
          .writeHead(status, { 'content-type': 'application/problem+json', ...headers })
          .end(JSON.stringify({ type: 'about:blank', title: code, status, code, detail: code })),
      cut: () => response.destroy(),
      gone: once(response, 'close').then(() => undefined),
    };
    media.calls.push(call);
    media.script(call, media.calls.length);
  };

  const server = createServer((request, response) => {
    void (async () => {
      if (media.hangs) return;
      if (request.headers.authorization !== `Bearer ${token}`) {
        media.refused += 1;
        return void response.writeHead(401).end();
      }
      if (request.method === 'POST' && request.url === '/v1/exercises/compose') {
        return compose((await json(request)) as ComposeRequest, response);
      }
      if (request.url === '/capacity') {
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(media.capacity));
      }
      if (request.method === 'PUT' && request.url?.startsWith('/v1/assets?')) {
        await buffer(request);
        media.uploads.push(request.url);
        const answer: AssetAnswer = { sha256: 'c'.repeat(64), bytes: 1, location: 'zone:assets/x', report: REPORT };
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      }
      const guid = /^\/v1\/exercises\/videos\/([^/]+)\/status$/.exec(request.url ?? '')?.[1];
      if (guid === undefined) return void response.writeHead(404).end();
      const status: VideoStatus = {
        guid,
        state: 'missing',
        lengthSeconds: 10,
        availableResolutions: [],
        collectionId: null,
        hlsUrl: `https://cdn.test/${guid}/playlist.m3u8`,
        messages: [],
        ...media.videos.get(guid),
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(status));
    })();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  media.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return media;
}
