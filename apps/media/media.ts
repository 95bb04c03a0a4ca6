import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import PQueue from 'p-queue';
import { createStorageClient } from '../../lib/bunny/storage-client.ts';
import { createStreamClient } from '../../lib/bunny/stream-client.ts';
import type { MediaConfig } from '../../lib/config/media.ts';
import type { Toolchain } from '../../lib/ffmpeg/capabilities.ts';
import type { Logger } from '../../lib/log.ts';
import { Admission } from '../../lib/media/admission.ts';
import { DiskCache } from '../../lib/media/disk-cache.ts';
import { sweepJobDirs } from '../../lib/media/job-dir.ts';
import type { Tools } from '../../lib/media/tools.ts';
import { createRegistry } from '../../lib/metrics.ts';
import { runShutdown, type ShutdownStep } from '../../lib/shutdown.ts';
import { createApp } from './app.ts';
import { mediaMetrics } from './metrics.ts';

export interface Media {
  url: string;
  /** What stops it, in order: refuse new work and let bakes end, end what is left, close the sockets. */
  steps: ShutdownStep[];
  /** Runs the steps. */
  close(): Promise<void>;
}

/** An ffmpeg is killed in milliseconds; the rest is the answer on its way out. */
const ABORT_DEADLINE_MS = 5_000;
/** A header is read in milliseconds; ffprobe needs 34 s for 300 MB of padding. */
const PROBE_TIMEOUT_MS = 20_000;
/** Uploads mostly wait for their sender. */
const CHECKS_PER_BAKE = 4;

/** Starts the media service: sweeps what an earlier process left, listens. It needs no database and no Redis. */
export async function createMedia(
  config: MediaConfig,
  { toolchain, log }: { toolchain: Toolchain; log: Logger },
): Promise<Media> {
  const { ffmpegPath, ffprobePath, fingerprint, version, x264 } = toolchain;
  log.info({ ffmpegPath, version, x264, fingerprint }, 'toolchain');
  const workDir = resolve(config.MEDIA_WORK_DIR);
  const swept = await sweepJobDirs(workDir);
  if (swept.length > 0) log.info({ swept }, 'removed folders of earlier jobs');
  const cacheDir = resolve(config.MEDIA_CACHE_DIR);
  await mkdir(cacheDir, { recursive: true });

  const tools: Tools = {
    ...{ ffmpegPath, ffprobePath, fingerprint, probeTimeoutMs: PROBE_TIMEOUT_MS },
    slots: new PQueue({ concurrency: config.MEDIA_ENCODERS }),
    silenceMs: config.MEDIA_SILENCE_MS,
    deadlineMs: config.MEDIA_DEADLINE_MS,
  };
  const cache = new DiskCache({ dir: cacheDir, workDir, maxBytes: config.MEDIA_CACHE_MAX_BYTES, log });
  const storage = createStorageClient({
    baseUrl: config.BUNNY_STORAGE_URL,
    zone: config.BUNNY_STORAGE_ZONE,
    accessKey: config.BUNNY_STORAGE_KEY,
  });
  const stream = createStreamClient({
    baseUrl: config.BUNNY_STREAM_URL,
    libraryId: config.BUNNY_LIBRARY_ID,
    apiKey: config.BUNNY_STREAM_KEY,
  });
  const maxBytes = config.MEDIA_MAX_UPLOAD_BYTES;
  const bakes = new Admission(config.MEDIA_CONCURRENCY);
  const checks = new Admission(config.MEDIA_CONCURRENCY * CHECKS_PER_BAKE);
  const stopping = new AbortController();
  const metrics = mediaMetrics(createRegistry('media'), {
    ...{ busy: () => bakes.busy, slots: bakes.slots, cacheBytes: () => cache.bytes },
  });
  const app = createApp({
    compose: {
      ...{ tools, cache, storage, stream, workDir, log },
      assets: { cache, storage, maxBytes, fileRoot: config.MEDIA_FILE_ROOT },
      cdnUrl: config.BUNNY_STORAGE_CDN_URL ?? config.BUNNY_CDN_URL,
      titlePrefix: config.BUNNY_TITLE_PREFIX,
    },
    ...{ bakes, checks, stopping: stopping.signal, metrics, log },
    token: config.MEDIA_TOKEN,
    maxUploadBytes: maxBytes,
    heartbeatMs: config.MEDIA_HEARTBEAT_MS,
    videoCdnUrl: config.BUNNY_CDN_URL,
  });

  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  // An upload of two gigabytes over a slow line takes longer than Node's five minutes.
  server.requestTimeout = 0;
  server.listen(config.MEDIA_PORT, config.MEDIA_HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = config.MEDIA_HOST.includes(':') ? `[${config.MEDIA_HOST}]` : config.MEDIA_HOST;

  const idle = async () => {
    await Promise.all([bakes.whenIdle(), checks.whenIdle()]);
  };
  const steps: ShutdownStep[] = [
    {
      name: 'drain',
      run: async () => {
        bakes.drain();
        checks.drain();
        const timer = setTimeout(() => stopping.abort(), config.MEDIA_DRAIN_MS);
        await idle();
        clearTimeout(timer);
      },
      deadlineMs: config.MEDIA_DRAIN_MS + ABORT_DEADLINE_MS,
    },
    {
      name: 'server',
      run: async () => {
        const closed = once(server, 'close');
        server.close();
        server.closeIdleConnections();
        const timer = setTimeout(() => server.closeAllConnections(), 1_000);
        await closed;
        clearTimeout(timer);
      },
      deadlineMs: 3_000,
    },
  ];
  return {
    url: `http://${host}:${port}`,
    steps,
    async close() {
      await runShutdown(steps, log);
    },
  };
}
