import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import { beforeAll, describe, expect, it } from 'vitest';
import { probe } from '../../../lib/ffmpeg/probe.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { prepareClip } from '../../../lib/media/clips.ts';
import { DiskCache } from '../../../lib/media/disk-cache.ts';
import { inspectSource, probeUpload } from '../../../lib/media/source.ts';
import type { Tools } from '../../../lib/media/tools.ts';
import { makeClip, makeTone, testFfmpeg } from '../../support/ffmpeg.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

const never = new AbortController().signal;
const { ffmpegPath, ffprobePath } = testFfmpeg();
let dir: string;
let killed: string;
let refusing: string;

async function aProgram(name: string, script: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

/** The real ffmpeg, killed after the first output that it writes: what the kernel does when memory runs out. */
const dyingFfmpeg = () => aProgram('dying-ffmpeg', `"${ffmpegPath}" "$@" & p=$!; sleep 0.3; kill -9 $p; kill -9 $$`);

beforeAll(async () => {
  dir = await makeTempDir();
  killed = await aProgram('killed', 'kill -9 $$');
  refusing = await aProgram('refusing', 'echo "Invalid data found" >&2; exit 1');
});

const tools = (change: Partial<Tools> = {}): Tools => ({
  ...{ ffmpegPath, ffprobePath, fingerprint: 'f'.repeat(64), slots: new PQueue({ concurrency: 2 }) },
  ...{ silenceMs: 10_000, deadlineMs: 30_000, probeTimeoutMs: 5_000 },
  ...change,
});
const aCache = async () => {
  const home = await makeTempDir();
  return new DiskCache({ dir: join(home, 'cache'), workDir: join(home, 'work'), maxBytes: 1e9, log: silentLog });
};

describe('a program killed from outside', () => {
  it('is never taken for one that refused its input, even where failure is tolerated', async () => {
    const run = runFfmpeg({ ffmpegPath: killed, args: [], silenceMs: 5_000, deadlineMs: 5_000, tolerateFailure: true });
    await expect(run).rejects.toMatchObject({ code: 'ffmpeg_failed', retryable: true });
  });

  it('does not make a good file undecodable, as a program that refuses it does', async () => {
    const path = await makeClip(await makeTempDir(), { seconds: 1, size: '160x120', rate: 10, audio: false });
    const looking = (program: string) => probe({ ffprobePath: program, path, timeoutMs: 5_000 });
    await expect(looking(killed)).rejects.toMatchObject({ code: 'ffmpeg_failed', retryable: true });
    await expect(looking(join(dir, 'absent'))).rejects.toMatchObject({ code: 'ffmpeg_failed', retryable: true });
    await expect(looking(refusing)).rejects.toMatchObject({ code: 'source_undecodable', retryable: false });
  });

  it('leaves nothing half known of a source behind', async () => {
    const cache = await aCache();
    const jobDir = await makeTempDir();
    const path = await makeClip(await makeTempDir(), { seconds: 2, size: '160x120', rate: 10, audio: false });
    const source = { path, sha256: 'a'.repeat(64) };
    const dying = inspectSource(tools({ ffmpegPath: await dyingFfmpeg() }), cache, source, jobDir, never);
    await expect(dying).rejects.toMatchObject({ code: 'ffmpeg_failed', retryable: true });
    const facts = await inspectSource(tools(), cache, source, jobDir, never);
    expect(facts.timesMs).toHaveLength(20);
  });

  it('leaves no half of a voice clip behind', async () => {
    const cache = await aCache();
    const jobDir = await makeTempDir();
    const path = await makeTone(await makeTempDir(), { seconds: 1, frequencyHz: 440, format: 'wav' });
    const clip = { name: 'start', path, sha256: 'b'.repeat(64) };
    const dying = prepareClip(tools({ ffmpegPath: await dyingFfmpeg() }), cache, clip, jobDir, never);
    await expect(dying).rejects.toMatchObject({ code: 'ffmpeg_failed', retryable: true });
    const made = await prepareClip(tools(), cache, clip, jobDir, never);
    expect(made.samples).toBe(48_000);
    expect((await readFile(made.path)).length).toBe(48_000 * 4);
  });
});

describe('a program that runs out of memory and ends by itself', () => {
  /** The real ffmpeg, which once loses all but the beginning of what it decodes and says what the decoder says then. */
  const starvedOnce = (name: string) =>
    aProgram(
      name,
      `case "$*" in *pipe:1*) if mkdir "${join(dir, name)}.once" 2>/dev/null; then
  "${ffmpegPath}" "$@" | head -c 2000
  echo "get_buffer() failed" >&2
  exit 69
fi;; esac
exec "${ffmpegPath}" "$@"`,
    );

  it('leaves nothing half known of a source behind', async () => {
    const cache = await aCache();
    const jobDir = await makeTempDir();
    const path = await makeClip(await makeTempDir(), { seconds: 8, size: '160x120', rate: 10, audio: false });
    const source = { path, sha256: 'c'.repeat(64) };
    const starving = tools({ ffmpegPath: await starvedOnce('starved-video') });
    await expect(inspectSource(starving, cache, source, jobDir, never)).rejects.toMatchObject({
      ...{ code: 'ffmpeg_failed', retryable: true },
    });
    const facts = await inspectSource(starving, cache, source, jobDir, never);
    expect(facts.timesMs).toHaveLength(80);
  });

  it('leaves no half of a voice clip behind', async () => {
    const cache = await aCache();
    const jobDir = await makeTempDir();
    const path = await makeTone(await makeTempDir(), { seconds: 1, frequencyHz: 440, format: 'wav' });
    const clip = { name: 'start', path, sha256: 'd'.repeat(64) };
    const starving = tools({ ffmpegPath: await starvedOnce('starved-audio') });
    await expect(prepareClip(starving, cache, clip, jobDir, never)).rejects.toMatchObject({ code: 'ffmpeg_failed' });
    expect((await prepareClip(starving, cache, clip, jobDir, never)).samples).toBe(48_000);
  });

  it('in ffprobe, whose status is then that for a damaged file, does not make a good one undecodable', async () => {
    const path = await makeClip(await makeTempDir(), { seconds: 1, size: '160x120', rate: 10, audio: false });
    const once = await aProgram(
      'starved-ffprobe',
      `mkdir "${join(dir, 'ffprobe')}.once" 2>/dev/null && { echo "Cannot allocate memory" >&2; exit 1; }
exec "${ffprobePath}" "$@"`,
    );
    const { video } = await probeUpload(tools({ ffprobePath: once }), path, never);
    expect(video).toMatchObject({ width: 160, height: 120 });
    await expect(probeUpload(tools({ ffprobePath: refusing }), path, never)).rejects.toMatchObject({
      ...{ code: 'source_undecodable', retryable: false },
    });
  });

  it('or that cannot even be loaded does not make a good file undecodable', async () => {
    const path = await makeClip(await makeTempDir(), { seconds: 1, size: '160x120', rate: 10, audio: false });
    // What the loader answers under a limit of memory.
    const program = await aProgram('unloaded', 'echo "failed to map segment from shared object" >&2; exit 127');
    const failed = { code: 'ffmpeg_failed', retryable: true };
    await expect(probe({ ffprobePath: program, path, timeoutMs: 5_000 })).rejects.toMatchObject(failed);
    const source = { path, sha256: 'f'.repeat(64) };
    const looking = inspectSource(tools({ ffmpegPath: program }), await aCache(), source, await makeTempDir(), never);
    await expect(looking).rejects.toMatchObject(failed);
  });

  it('is not to blame where a file is damaged: that comes to the same twice', async () => {
    const bytes = await readFile(await makeClip(await makeTempDir(), { seconds: 2, size: '160x120', rate: 10 }));
    // Into the picture data, beside the headers.
    bytes.fill(0x55, Math.floor(bytes.length * 0.3), Math.floor(bytes.length * 0.5));
    const path = join(await makeTempDir(), 'damaged.mp4');
    await writeFile(path, bytes);
    const facts = await inspectSource(
      tools(),
      await aCache(),
      { path, sha256: 'e'.repeat(64) },
      await makeTempDir(),
      never,
    );
    expect(facts.timesMs.length).toBeGreaterThan(1);
  });
});
