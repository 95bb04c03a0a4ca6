import { mkdirSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import type { Logger } from '../../lib/log.ts';
import { createCdnApp } from './cdn.ts';
import { createControlRoutes } from './control.ts';
import { examineHeader } from './fast-ladder.ts';
import { Faults } from './faults.ts';
import { Journal, type SimEnv } from './journal.ts';
import { examineWith } from './ladder.ts';
import { Library } from './library.ts';
import { createStorageApp } from './storage.ts';
import { createStreamRoutes, type StreamDeps } from './stream.ts';
import { Transcoder } from './transcoder.ts';
import { createTusRoutes } from './tus.ts';
import { Webhooks } from './webhooks.ts';
import { Zone } from './zone.ts';

export interface SimConfig {
  /** Everything the simulator knows lives there; two must not share it. */
  dataDir: string;
  /** Where ffmpeg and ffprobe are; `fast`: start no process, read MP4 headers and serve a token ladder. */
  transcode: { ffmpegPath: string; ffprobePath: string } | 'fast';
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 0: any free port. */
  streamPort?: number;
  storagePort?: number;
  cdnPort?: number;
  /** No webhooks where it is not set. May carry `?token=`. */
  webhookUrl?: string | undefined;
  /** The faults to start with, as `POST /sim/faults` takes them. */
  faults?: unknown;
  /** Videos transcoded at a time; default 1. */
  transcodeConcurrency?: number;
  libraryId?: number;
  streamKey?: string;
  readOnlyKey?: string;
  storageZone?: string;
  storageKey?: string;
  storageReadKey?: string;
  /** Unsigned playback is refused where it is set. */
  cdnTokenKey?: string | undefined;
}

/** What a simulator answers to where its config says nothing else; good for tests only. */
export const SIM_DEFAULTS = {
  libraryId: 133,
  streamKey: 'sim-stream-key-0123456789',
  readOnlyKey: 'sim-read-only-key-0123456789',
  storageZone: 'sim-zone',
  storageKey: 'sim-storage-key-0123456789',
  storageReadKey: 'sim-storage-read-key-0123456789',
} as const;

export interface Sim {
  streamUrl: string;
  storageUrl: string;
  cdnUrl: string;
  /** Stops listening, ends ffmpeg, and resolves when all is quiet. What was under way is resumed at the next start. */
  close(): Promise<void>;
}

/**
 * A stand-in for Bunny Stream, Edge Storage and the CDN on three sockets of this process. What it knows survives a
 * restart on the same `dataDir`. Throws a `ZodError` where `faults` are not valid.
 */
export async function createSim(config: SimConfig, { log }: { log: Logger }): Promise<Sim> {
  const settings = { ...SIM_DEFAULTS, host: '127.0.0.1', transcodeConcurrency: 1, ...config };
  mkdirSync(settings.dataDir, { recursive: true });
  const closing = new AbortController();
  const faults = new Faults(settings.faults);
  const journal = new Journal();
  const library = new Library(settings.dataDir);
  const zone = new Zone(join(settings.dataDir, 'storage'));
  const webhooks = new Webhooks({
    url: settings.webhookUrl,
    key: settings.readOnlyKey,
    libraryId: settings.libraryId,
    faults,
    journal,
    closing: closing.signal,
  });
  const transcoder = new Transcoder({
    library,
    examine: settings.transcode === 'fast' ? examineHeader : examineWith(settings.transcode),
    webhooks,
    faults,
    concurrency: settings.transcodeConcurrency,
    log,
  });

  const streamDeps: StreamDeps = { ...settings, library, transcoder, webhooks, faults, closing: closing.signal };
  const streamApp = new Hono<SimEnv>();
  streamApp.use(journal.middleware('stream'));
  streamApp.get('/healthz', (c) => c.json({ status: 'ok' }));
  streamApp.route('/sim', createControlRoutes(faults, journal));
  streamApp.route('/library', createStreamRoutes(streamDeps));
  streamApp.route('/tusupload', createTusRoutes(streamDeps, join(settings.dataDir, 'tus')));
  const storageApp = createStorageApp({
    zoneName: settings.storageZone,
    zoneKey: settings.storageKey,
    zoneReadKey: settings.storageReadKey,
    zone,
    incoming: library.incoming,
    faults,
    journal,
    closing: closing.signal,
  });
  const cdnApp = createCdnApp({ library, zone, tokenKey: settings.cdnTokenKey, journal });
  for (const app of [streamApp, storageApp, cdnApp]) {
    app.notFound(() => new Response(null, { status: 404 }));
    app.onError((error) => {
      log.error({ err: error }, 'a request failed');
      return Response.json({ success: false, message: 'Internal Server Error', statusCode: 500 }, { status: 500 });
    });
  }

  const servers: Server[] = [];
  const close = async () => {
    closing.abort();
    await Promise.all([...servers.map(stop), transcoder.close()]);
    await webhooks.allDrained();
  };
  try {
    const open = async (app: Hono<SimEnv>, port: number | undefined) => {
      const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server;
      servers.push(server);
      return listen(server, settings.host, port ?? 0);
    };
    const streamUrl = await open(streamApp, settings.streamPort);
    const storageUrl = await open(storageApp, settings.storagePort);
    const cdnUrl = await open(cdnApp, settings.cdnPort);
    transcoder.resume();
    return { streamUrl, storageUrl, cdnUrl, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  // An upload may take hours; Node would end it after five minutes.
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

async function stop(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
