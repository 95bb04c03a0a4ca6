import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AssetAnswer } from '../../../lib/media/contract.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningSim, startSim } from '../bunny/harness.ts';
import { ffmpegPids, type RunningMedia, requestFor, startMedia } from './harness.ts';

let sim: RunningSim;
let uploader: RunningMedia;
let source: AssetAnswer;

beforeAll(async () => {
  sim = await startSim();
  uploader = await startMedia({}, { sim });
  source = await uploader.upload(await makeClip(await makeTempDir(), { seconds: 2, size: '160x120', rate: 10 }));
});
afterAll(async () => {
  await uploader.close();
  await sim.close();
});

/** Sends the signal to the first ffmpeg that is at work; ffprobe, which comes before it, has a deadline of its own. */
const signalled = (signal: NodeJS.Signals) => () =>
  waitFor(
    async () => {
      for (const pid of await ffmpegPids()) {
        if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() === 'ffmpeg') return process.kill(pid, signal);
      }
      return null;
    },
    { label: 'an ffmpeg', timeoutMs: 20_000, everyMs: 5 },
  );

describe('an ffmpeg in the middle of a bake', { timeout: 60_000 }, () => {
  it.each([
    ['that hangs', 'ffmpeg_silent', { MEDIA_SILENCE_MS: '1000' }, signalled('SIGSTOP')],
    ['that somebody kills, as the kernel does when memory runs out', 'ffmpeg_failed', {}, signalled('SIGKILL')],
    ['that somebody tells to stop', 'ffmpeg_failed', {}, signalled('SIGTERM')],
    ['that takes longer than it may', 'ffmpeg_timeout', { MEDIA_DEADLINE_MS: '1500' }, async () => {}],
  ] as const)('%s ends the attempt as %s, to be tried again, with nothing left of it', async (_, code, env, strike) => {
    const media = await startMedia(env, { sim });
    try {
      const request = requestFor(source, {
        ...{ reps: 1, cues: 'none' as const, tempo: { out: 60, hold: 0, back: 60, pause: 0 } },
      });
      const bake = media.bake(request).catch((error: unknown) => error);
      await strike();
      expect(await bake).toMatchObject({ code, retryable: true });
      await waitFor(async () => (await media.client.capacity()).busy === 0, { label: 'the slot to be free' });
      expect(await ffmpegPids()).toEqual([]);
      expect(await media.jobDirs()).toEqual([]);
      expect(await sim.storage.list(`renders/${request.recipeHash}`)).toEqual([]);
    } finally {
      await media.close();
    }
  });
});
