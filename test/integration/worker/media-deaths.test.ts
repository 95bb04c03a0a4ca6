import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Env } from '../../../lib/config/env.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { built } from '../../support/built.ts';
import { testRedis } from '../../support/redis.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker, type TestWorker } from '../../support/worker.ts';
import { type RunningSim, startSim } from '../bunny/harness.ts';
import { ffmpegPids } from '../media/harness.ts';
import {
  atBunny,
  isRunning,
  jobDirsIn,
  MEDIA_TOKEN,
  mediaEnv,
  pipelineOf,
  QUICK,
  SLOW,
  uploadSource,
} from './pipeline.ts';

const database = useTestDatabase();
const { startApp } = useAppProcesses({ timeoutMs: 120_000 });

let sim: RunningSim;
let env: Env & { MEDIA_WORK_DIR: string };
let pipeline: ReturnType<typeof pipelineOf>;
let worker: TestWorker | undefined;

beforeAll(async () => {
  sim = await startSim();
  pipeline = pipelineOf(database.db);
});
afterAll(() => sim.close());

beforeEach(async () => {
  await pipeline.forgetAll();
  env = await mediaEnv(sim);
});
afterEach(async () => {
  await worker?.stop();
  worker = undefined;
});

function work(mediaUrl: string, change: Record<string, string> = {}): void {
  const { url, prefix } = testRedis();
  const given = { databaseUrl: database.url, redisUrl: url, prefix, mediaUrl, mediaToken: MEDIA_TOKEN };
  worker = startTestWorker(given, { RENDER_LEASE_MS: '5000', RENDER_SILENCE_MS: '20000', ...change });
}

const underWay = (mediaPid: number) =>
  waitFor(
    async () => {
      const found = await ffmpegPids(mediaPid);
      return found.length > 0 ? found : null;
    },
    { label: 'an ffmpeg', timeoutMs: 30_000, everyMs: 5 },
  );

/** Codes of the errors that attempts ended with, in order. */
const errorsOf = async (id: string) => (await pipeline.history(id)).flatMap(({ error }) => (error ? [error.code] : []));

/** Nothing is in the zone for this recipe, or all that the manifest names. */
async function expectNoHalf(recipeHash: string) {
  const objects = await sim.storage.list(`renders/${recipeHash}`);
  if (objects.length === 0) return;
  const { stream } = await sim.storage.get(`renders/${recipeHash}/manifest.json`);
  const text = Buffer.concat(await stream.toArray()).toString('utf8');
  for (const { path } of objects) {
    if (!path.endsWith('manifest.json')) expect(text).toContain(path.slice(path.lastIndexOf('/') + 1));
  }
}

describe('media', { timeout: 150_000 }, () => {
  it('killed in the middle of a bake: tried again by the next one, which removes what was left, programs too', async () => {
    const first = await startApp('media', env);
    const url = String(first.ready.url);
    const source = await uploadSource(url);
    work(url);
    const id = await pipeline.publish(source, SLOW);
    const pids = await underWay(first.child.pid ?? 0);
    const dirs = await jobDirsIn(env.MEDIA_WORK_DIR);
    expect(dirs.length).toBeGreaterThan(0);
    first.child.kill('SIGKILL');
    await waitFor(async () => (await errorsOf(id)).length > 0, { label: 'the failure to be noted', timeoutMs: 30_000 });
    expect(await errorsOf(id)).toEqual(['media_unavailable']);

    const second = await startApp('media', { ...env, MEDIA_PORT: new URL(url).port });
    expect(pids.filter(isRunning)).toEqual([]);
    await underWay(second.child.pid ?? 0);
    expect((await jobDirsIn(env.MEDIA_WORK_DIR)).filter((dir) => dirs.includes(dir))).toEqual([]);
    // What was not there to answer costs no attempt; what broke off one.
    expect(await pipeline.render(id)).toMatchObject({ status: 'rendering', attempts: 2 });
  });

  it('hung: the call is given up after its silence, the bake tried again, and ends with one video', async () => {
    const { child, ready } = await startApp('media', env);
    const source = await uploadSource(String(ready.url));
    work(String(ready.url), { RENDER_SILENCE_MS: '1500', RENDER_BACKOFF_MS: '1000', RENDER_BACKOFF_MAX_MS: '2000' });
    const id = await pipeline.publish(source, QUICK);
    await underWay(child.pid ?? 0);
    child.kill('SIGSTOP');
    await waitFor(async () => (await errorsOf(id)).length > 0, { label: 'the silence to be noted', timeoutMs: 30_000 });
    child.kill('SIGCONT');
    const { recipeHash, videoGuid } = await pipeline.reaches(id, 'transcoding');
    expect(new Set(await errorsOf(id))).toEqual(new Set(['media_silent']));
    const { videos, uploads } = await atBunny(sim, recipeHash);
    expect([videos.map(({ guid }) => guid), uploads]).toEqual([[videoGuid], 1]);
  });

  it('out of disk: fails in a way that may pass, leaves nothing half made, and works once there is room', async () => {
    const main = built('apps/media/main.ts');
    // No file of more than 50 kB (in blocks of 512 bytes) for it and its ffmpegs.
    const limited = execa('sh', ['-c', 'ulimit -f 100; exec "$0" "$1"', process.execPath, main], {
      env: { PATH: process.env.PATH, ...env },
      ...{ extendEnv: false, reject: false, timeout: 60_000, killSignal: 'SIGKILL' },
    });
    let output = '';
    limited.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    try {
      await waitFor(() => output.includes('\n'), { label: 'the ready line', timeoutMs: 30_000 });
      const { url } = JSON.parse(output) as { url: string };
      const source = await uploadSource(url);
      work(url, { RENDER_BACKOFF_MS: '2000', RENDER_BACKOFF_MAX_MS: '4000' });
      const id = await pipeline.publish(source, { ...QUICK, reps: 3 });
      await waitFor(async () => (await errorsOf(id)).length > 0, {
        label: 'the failure to be noted',
        timeoutMs: 30_000,
      });
      limited.kill('SIGTERM');
      await limited;
      const { recipeHash } = await pipeline.render(id);
      await expectNoHalf(recipeHash);
      expect(await jobDirsIn(env.MEDIA_WORK_DIR)).toEqual([]);

      await startApp('media', { ...env, MEDIA_PORT: new URL(url).port });
      await pipeline.reaches(id, 'transcoding');
      // The disk is to blame, or ffmpeg that ended on it: never the film.
      for (const code of await errorsOf(id)) expect(['ffmpeg_failed', 'internal']).toContain(code);
      const { videos, uploads } = await atBunny(sim, recipeHash);
      expect([videos.length, uploads]).toEqual([1, 1]);
      await expectNoHalf(recipeHash);
    } finally {
      limited.kill('SIGKILL');
    }
  });
});
