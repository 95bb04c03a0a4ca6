import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import { beforeAll, describe, expect, it } from 'vitest';
import { probe } from '../../../lib/ffmpeg/probe.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { prepareClip } from '../../../lib/media/clips.ts';
import { DiskCache } from '../../../lib/media/disk-cache.ts';
import { inspectSource } from '../../../lib/media/source.ts';
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
