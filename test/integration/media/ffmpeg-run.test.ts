import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '../../../lib/errors.ts';
import { inputArgs } from '../../../lib/ffmpeg/argv.ts';
import { checkToolchain, NEEDED } from '../../../lib/ffmpeg/capabilities.ts';
import { measureAudio, measureLoudness, measureVideo } from '../../../lib/ffmpeg/decode.ts';
import { probe } from '../../../lib/ffmpeg/probe.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { makeClip, makeTone, testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { ffmpegPids, make } from './harness.ts';

const { ffmpegPath, ffprobePath } = testFfmpeg();
const limits = { silenceMs: 20_000, deadlineMs: 20_000 };
const ENDLESS = ['-f', 'lavfi', '-i', 'testsrc2=size=64x64'];
/** Reads in real time, so that it goes on for an hour without work. */
const LAZY = ['-re', ...ENDLESS, '-t', '3600', '-f', 'null', '-'];

let dir: string;
beforeAll(async () => {
  dir = await makeTempDir();
});

/** A stand-in for ffmpeg that does what a few lines of shell say. */
async function script(name: string, lines: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  return path;
}

describe('an ffmpeg run', () => {
  it('tells its progress and hands its output on at the pace of the reader', async () => {
    const frames: number[] = [];
    let bytes = 0;
    const { code, progress, stderrTail } = await runFfmpeg({
      ...{ ffmpegPath, ...limits, onProgress: ({ frame }) => frames.push(frame) },
      args: [...ENDLESS, '-frames:v', '50', '-f', 'rawvideo', '-pix_fmt', 'gray', 'pipe:1'],
      stdout: async (stream) => {
        for await (const chunk of stream as AsyncIterable<Buffer>) bytes += chunk.length;
      },
    });
    expect({ code, bytes, stderrTail }).toEqual({ code: 0, bytes: 50 * 64 * 64, stderrTail: '' });
    expect(progress.frame).toBe(50);
    expect(frames.at(-1)).toBe(50);
  });

  it('that fails carries its status and the end of what it said, however much that was', async () => {
    const failed = runFfmpeg({ ffmpegPath, ...limits, args: [...inputArgs('/nonexistent.mp4'), '-f', 'null', '-'] });
    await expect(failed).rejects.toMatchObject({
      code: 'ffmpeg_failed',
      detail: expect.stringContaining('No such file'),
    });
    const chatty = await script('chatty', 'yes "a long complaint" | head -c 3000000 >&2; echo the end >&2; exit 3');
    const error = await runFfmpeg({ ffmpegPath: chatty, ...limits, args: [] }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ffmpeg_failed', detail: expect.stringMatching(/ended with 3: .*the end$/s) });
    expect((error as AppError).detail?.length).toBeLessThan(9_000);
  });

  it('that cannot start says so', async () => {
    await expect(runFfmpeg({ ffmpegPath: join(dir, 'no-such-program'), ...limits, args: [] })).rejects.toMatchObject({
      ...{ code: 'ffmpeg_failed', detail: expect.stringContaining('ENOENT') },
    });
  });

  it('is dead when its abort is answered, even with unread output in the pipe', async () => {
    const controller = new AbortController();
    const run = runFfmpeg({
      ...{ ffmpegPath, ...limits, signal: controller.signal },
      args: [...ENDLESS, '-f', 'rawvideo', 'pipe:1'],
      stdout: (stream) => new Promise((_, reject) => stream.once('close', () => reject(new Error('closed')))),
    });
    await waitFor(async () => (await ffmpegPids()).length > 0, { label: 'ffmpeg to run' });
    controller.abort();
    await expect(run).rejects.toMatchObject({ code: 'aborted' });
    expect(await ffmpegPids()).toEqual([]);
    await expect(runFfmpeg({ ffmpegPath, ...limits, args: LAZY, signal: controller.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
  });

  it('is killed when it makes no progress, though it keeps reporting and ignores polite signals', async () => {
    const deaf = await script(
      'deaf',
      "trap '' TERM INT; while :; do echo 'frame=1\\nprogress=continue' >&3; sleep 0.05; done",
    );
    const started = performance.now();
    await expect(runFfmpeg({ ffmpegPath: deaf, args: [], silenceMs: 400, deadlineMs: 10_000 })).rejects.toMatchObject({
      code: 'ffmpeg_silent',
    });
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  it('is killed at its deadline, progress or not', async () => {
    const late = runFfmpeg({ ffmpegPath, args: LAZY, silenceMs: 10_000, deadlineMs: 700 });
    await expect(late).rejects.toMatchObject({ code: 'ffmpeg_timeout' });
    expect(await ffmpegPids()).toEqual([]);
  });

  it('that somebody else killed is a failure, not an abort', async () => {
    const run = runFfmpeg({ ffmpegPath, args: LAZY, ...limits });
    const pids = await waitFor(async () => (await ffmpegPids()).at(0), { label: 'ffmpeg to run' });
    process.kill(pids, 'SIGKILL');
    await expect(run).rejects.toMatchObject({
      code: 'ffmpeg_failed',
      detail: expect.stringContaining('killed from outside'),
    });
  });

  it('ends with the failure of whoever feeds or reads it', async () => {
    const feed = (async function* () {
      yield Buffer.alloc(1000);
      throw new AppError('asset_corrupt');
    })();
    const pcm = ['-f', 's16le', '-i', 'pipe:0', '-f', 'null', '-'];
    await expect(runFfmpeg({ ffmpegPath, ...limits, args: pcm, stdin: feed })).rejects.toMatchObject({
      code: 'asset_corrupt',
    });
    const picky = runFfmpeg({
      ...{ ffmpegPath, ...limits, args: [...ENDLESS, '-f', 'rawvideo', 'pipe:1'] },
      stdout: async () => {
        throw new AppError('storage_failed');
      },
    });
    await expect(picky).rejects.toMatchObject({ code: 'storage_failed' });
    const nobody = (async function* () {
      for (;;) yield Buffer.alloc(65_536);
    })();
    // ffmpeg leaves early; that the rest found no reader is no failure.
    const early = runFfmpeg({
      ffmpegPath,
      ...limits,
      stdin: nobody,
      args: ['-f', 's16le', '-t', '0.1', '-i', 'pipe:0', '-f', 'null', '-'],
    });
    expect((await early).code).toBe(0);
  });
});

describe('what is measured', () => {
  it('is what decodes, not what the header claims', async () => {
    const path = await makeClip(dir, { seconds: 2, rate: 25, audio: true });
    const facts = await probe({ ffprobePath, path, timeoutMs: 10_000 });
    expect(facts).toMatchObject({ claimedDurationMs: 2000, video: { displayWidth: 320 }, audio: [{ codec: 'aac' }] });
    const picture = await measureVideo({ ffmpegPath, path, stream: 0, maxSeconds: 600, ...limits });
    expect(picture).toMatchObject({
      frames: 50,
      durationMs: 2000,
      firstMs: 0,
      errorLines: 0,
      exitCode: 0,
    });
    expect(picture.timesMs).toHaveLength(50);
    const cut = await measureVideo({ ffmpegPath, path, stream: 0, maxSeconds: 1, ...limits });
    expect(cut.frames).toBeLessThanOrEqual(26);
    const sound = await measureAudio({ ffmpegPath, path, stream: 1, maxSeconds: 600, ...limits });
    expect(Math.abs(sound.durationMs - 2000)).toBeLessThan(30);
  });

  it('is loudness in LUFS and peaks in dBTP, and silence where nothing is heard', async () => {
    const tone = await makeTone(dir, { seconds: 2 });
    const heard = await measureLoudness({ ffmpegPath, input: inputArgs(tone), ...limits });
    expect(heard.lufs).toBeLessThan(-15);
    expect(heard.lufs).toBeGreaterThan(-30);
    expect(heard.truePeakDb).toBeCloseTo(-18, 0);
    const silence = await make(dir, 'silence.wav', ['-f', 'lavfi', '-i', 'anullsrc', '-t', '1']);
    expect(await measureLoudness({ ffmpegPath, input: inputArgs(silence), ...limits })).toEqual({
      ...{ lufs: Number.NEGATIVE_INFINITY, truePeakDb: Number.NEGATIVE_INFINITY },
    });
  });
});

describe('the toolchain', () => {
  it('is named by a stable fingerprint, and what it lacks is named too', async () => {
    const first = await checkToolchain({ ffmpegPath, ffprobePath });
    expect(first.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect(first.x264).toMatch(/^core \d+/);
    expect((await checkToolchain({ ffmpegPath, ffprobePath })).fingerprint).toBe(first.fingerprint);
    const needs = { ...NEEDED, filters: ['fps', 'unheard_of'], encoders: ['libx999'] };
    await expect(checkToolchain({ ffmpegPath, ffprobePath }, needs)).rejects.toThrow(
      /lacks: encoder libx999, filter unheard_of/,
    );
    await expect(checkToolchain({ ffmpegPath: await script('other', 'echo hello'), ffprobePath })).rejects.toThrow(
      /does not introduce itself as ffmpeg/,
    );
    const old = await script('ffmpeg-old', 'echo "ffmpeg version 4.4.1 Copyright"');
    await expect(checkToolchain({ ffmpegPath: old, ffprobePath })).rejects.toThrow(/ffmpeg 4\.4\.1 is too old/);
  });
});
