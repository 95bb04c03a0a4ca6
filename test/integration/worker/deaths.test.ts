import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Env } from '../../../lib/config/env.ts';
import { cancelByOperator } from '../../../lib/db/operate.ts';
import { createMediaClient } from '../../../lib/media/client.ts';
import { useAppProcesses } from '../../support/app-process.ts';
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
const lasting = useAppProcesses({ until: afterAll, timeoutMs: 240_000 });
const { startApp } = useAppProcesses({ timeoutMs: 120_000 });

/** Long enough not to be lost to a busy machine. */
const LEASE_MS = 3_000;

let sim: RunningSim;
let workDir: string;
let mediaPid: number;
let mediaUrl: string;
let source: string;
let pipeline: ReturnType<typeof pipelineOf>;
let redis: ReturnType<typeof testRedis>;
const workers: TestWorker[] = [];
const victims: { kill(signal: 'SIGKILL'): boolean }[] = [];

beforeAll(async () => {
  sim = await startSim();
  const env = await mediaEnv(sim);
  workDir = env.MEDIA_WORK_DIR;
  const media = await lasting.startApp('media', { ...env, MEDIA_CONCURRENCY: '3' });
  mediaPid = media.child.pid ?? 0;
  mediaUrl = String(media.ready.url);
  source = await uploadSource(mediaUrl);
  pipeline = pipelineOf(database.db);
});
afterAll(() => sim.close());

beforeEach(async () => {
  await pipeline.forgetAll();
  redis = testRedis();
});
afterEach(async () => {
  // Before the others hand back, or what lives of them takes over.
  for (const victim of victims.splice(0)) victim.kill('SIGKILL');
  for (const worker of workers.splice(0)) await worker.stop();
  await waitFor(async () => (await busy()) === 0, { label: 'media to be idle', timeoutMs: 20_000 });
});

const busy = async () => (await createMediaClient({ baseUrl: mediaUrl, token: MEDIA_TOKEN }).capacity()).busy;

const limits = { RENDER_LEASE_MS: String(LEASE_MS), SWEEP_MS: '100' };

/** A worker in a process of its own, which the test does something to. */
async function startVictim() {
  const env: Env = {
    ...{ DATABASE_URL: database.url, REDIS_URL: redis.url, REDIS_PREFIX: redis.prefix },
    ...{ MEDIA_URL: mediaUrl, MEDIA_TOKEN, LOG_LEVEL: 'silent', WORKER_NAME: 'victim', ...limits },
  };
  const { child, ready } = await startApp('worker', env);
  victims.push(child);
  return {
    child,
    /** How many of its bakes ended so. */
    ends: async (end: string) => {
      const metrics = await (await fetch(String(ready.metricsUrl))).text();
      return Number(
        new RegExp(`^bakehouse_render_attempts_total\\{.*end="${end}".*\\} (\\d+)`, 'm').exec(metrics)?.[1],
      );
    },
  };
}

/** The worker that is still there. */
function startSuccessor(env: Record<string, string> = {}): TestWorker {
  const given = {
    databaseUrl: database.url,
    redisUrl: redis.url,
    prefix: redis.prefix,
    mediaUrl,
    mediaToken: MEDIA_TOKEN,
  };
  const worker = startTestWorker(given, { ...limits, WORKER_NAME: 'successor', ...env });
  workers.push(worker);
  return worker;
}

/** The processes and folders of the bake under way, once ffmpeg is at it. */
async function bakeUnderWay(id: string) {
  const pids = await waitFor(
    async () => {
      const found = await ffmpegPids(mediaPid);
      return found.length > 0 ? found : null;
    },
    { label: 'an ffmpeg', timeoutMs: 20_000, everyMs: 5 },
  );
  expect(await pipeline.render(id)).toMatchObject({ status: 'rendering', claimedBy: 'victim', attempts: 1 });
  return { pids, dirs: await jobDirsIn(workDir) };
}

/** Nothing of that bake is left: what a successor has begun meanwhile is another one. */
const isGone = ({ pids, dirs }: { pids: number[]; dirs: string[] }) =>
  waitFor(
    async () => {
      const left = await jobDirsIn(workDir);
      return !pids.some(isRunning) && !dirs.some((dir) => left.includes(dir));
    },
    { label: 'ffmpeg and the folder to go', timeoutMs: 2_000 },
  );

const takenOver = (id: string, withinMs: number) =>
  waitFor(async () => (await pipeline.render(id)).claimedBy === 'successor', {
    ...{ label: 'the successor to claim', timeoutMs: withinMs },
  });

describe('a worker', { timeout: 150_000 }, () => {
  it('killed in the middle of a bake: ffmpeg goes at once, another takes over within a lease, one attempt is counted', async () => {
    const victim = await startVictim();
    const id = await pipeline.publish(source, SLOW);
    const bake = await bakeUnderWay(id);
    startSuccessor();
    victim.child.kill('SIGKILL');
    await isGone(bake);
    // A lease and a sweep, and what a busy machine needs for both.
    await takenOver(id, LEASE_MS + 5_000);
    expect(await pipeline.render(id)).toMatchObject({ status: 'rendering', attempts: 2 });
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'lease-expired', 'claim']);
  });

  it('told to stop in the middle of a bake: the row is handed back at once, no attempt is counted, ffmpeg goes', async () => {
    const victim = await startVictim();
    const id = await pipeline.publish(source, SLOW);
    const bake = await bakeUnderWay(id);
    victim.child.kill('SIGTERM');
    const row = await pipeline.reaches(id, 'pending', LEASE_MS);
    expect(row).toMatchObject({ attempts: 0, leaseToken: null, errorCode: null, notBefore: null });
    await isGone(bake);
    expect((await victim.child).exitCode).toBe(0);
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'shutdown']);
  });

  it('whose render is cancelled in the middle of its bake: its next heartbeat stops ffmpeg, and nothing was uploaded', async () => {
    const victim = await startVictim();
    const id = await pipeline.publish(source, SLOW);
    const bake = await bakeUnderWay(id);
    await cancelByOperator(database.db, [id], 'cancelled by a test');
    await waitFor(async () => (await victim.ends('lease-lost')) === 1, {
      label: 'the cancel to be noticed',
      timeoutMs: LEASE_MS + 5_000,
    });
    await isGone(bake);
    const row = await pipeline.render(id);
    expect(row).toMatchObject({ status: 'failed', errorCode: 'cancelled', leaseToken: null });
    expect(await atBunny(sim, row.recipeHash)).toEqual({ videos: [], uploads: 0 });
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'cancelled by a test']);
    expect(await pipeline.notifications()).toEqual([]);
  });

  it('frozen past its lease and woken in the middle of its bake drops its call and changes nothing', async () => {
    const victim = await startVictim();
    const id = await pipeline.publish(source, SLOW);
    await bakeUnderWay(id);
    victim.child.kill('SIGSTOP');
    startSuccessor();
    await takenOver(id, 30_000);
    // Nobody reads the answer to the frozen one, which keeps nobody from anything.
    await waitFor(async () => (await busy()) === 2, { label: 'both bakes', timeoutMs: 30_000 });
    const before = await pipeline.render(id);
    const history = await pipeline.history(id);
    victim.child.kill('SIGCONT');
    await waitFor(async () => (await busy()) === 1, { label: 'the void bake to be dropped', timeoutMs: 30_000 });
    await waitFor(async () => (await victim.ends('lease-lost')) === 1, {
      label: 'the loss to be noticed',
      timeoutMs: 30_000,
    });
    expect(await pipeline.render(id)).toMatchObject({
      ...{ status: 'rendering', claimedBy: 'successor', attempts: 2, leaseToken: before.leaseToken },
    });
    expect(await pipeline.history(id)).toEqual(history);
  });

  it('frozen while its bake ends: the bake is used as it is, once, and what the woken one says changes nothing', async () => {
    const victim = await startVictim();
    const id = await pipeline.publish(source, QUICK);
    await bakeUnderWay(id);
    victim.child.kill('SIGSTOP');
    await waitFor(async () => (await busy()) === 0, { label: 'the bake to end', timeoutMs: 60_000 });
    const { recipeHash, videoGuid } = await pipeline.render(id);
    expect(videoGuid).toBeNull();
    const made = await atBunny(sim, recipeHash);
    expect(made.videos).toHaveLength(1);

    startSuccessor({ TRANSCODE_DEADLINE_MS: '100', TRANSCODE_POLL_MS: '100' });
    const ready = await pipeline.reaches(id, 'ready', 60_000);
    expect(ready).toMatchObject({ videoGuid: made.videos[0]?.guid, claimedBy: 'successor', attempts: 2 });
    const history = await pipeline.history(id);
    victim.child.kill('SIGCONT');
    await waitFor(async () => (await victim.ends('lease-lost')) === 1, {
      label: 'the loss to be noticed',
      timeoutMs: 30_000,
    });
    expect(await pipeline.render(id)).toEqual(ready);
    expect(await pipeline.history(id)).toEqual(history);
    expect(await pipeline.notifications()).toEqual([]);
    const after = await atBunny(sim, recipeHash);
    expect([after.videos.length, after.uploads]).toEqual([1, 1]);
  });
});
