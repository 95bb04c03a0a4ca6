import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareClip } from '../../../lib/media/clips.ts';
import { DiskCache } from '../../../lib/media/disk-cache.ts';
import { encodeUnits } from '../../../lib/media/picture.ts';
import type { Unit } from '../../../lib/media/plan.ts';
import { rungsFor } from '../../../lib/media/profiles.ts';
import { inspectSource } from '../../../lib/media/source.ts';
import type { Tools } from '../../../lib/media/tools.ts';
import { testFfmpeg } from '../../support/ffmpeg.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { make } from './harness.ts';

const never = new AbortController().signal;
const slow = { silenceMs: 20_000, deadlineMs: 60_000, probeTimeoutMs: 20_000, fingerprint: 'f'.repeat(64) };
const wholeFilm: Unit = { first: 0, end: 15, frames: 30, originMs: 0, stretch: 1, mirrored: false };

let dir: string;
let film: string;
let voice: string;

beforeAll(async () => {
  dir = await makeTempDir();
  const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440:duration=1'];
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=64x36:rate=15:duration=1', '-c:v', 'libx264'];
  film = await make(dir, 'film.mp4', picture);
  voice = await make(dir, 'voice.wav', tone);
});

/** What several bakes share, by name: each does it for a bake whose folder is `jobDir`, and says where the result is. */
const STEPS = {
  'the look at a source': async (tools: Tools, cache: DiskCache, jobDir: string, signal: AbortSignal) => {
    const source = { path: join(jobDir, 'film.mp4'), sha256: 'a'.repeat(64) };
    expect((await inspectSource(tools, cache, source, jobDir, signal)).timesMs).toHaveLength(15);
  },
  'a voice clip made ready': async (tools: Tools, cache: DiskCache, jobDir: string, signal: AbortSignal) => {
    const clip = { name: 'start', path: join(jobDir, 'voice.wav'), sha256: 'b'.repeat(64) };
    expect((await prepareClip(tools, cache, clip, jobDir, signal)).samples).toBe(48_000);
  },
  'an encoded segment': async (tools: Tools, cache: DiskCache, jobDir: string, signal: AbortSignal) => {
    const source = { path: join(jobDir, 'film.mp4'), sha256: 'a'.repeat(64) };
    const facts = await inspectSource(tools, cache, source, jobDir, signal);
    const { baselines } = rungsFor(facts.video);
    const profiles = baselines.slice(0, 1);
    const work = { units: [wholeFilm], profiles, jobDir };
    const encoded = await encodeUnits({ tools, cache }, { ...facts, path: source.path }, work, {
      signal,
      onProgress: () => undefined,
    });
    for (const profile of profiles) expect((await stat(encoded.pathOf(wholeFilm, profile))).size).toBeGreaterThan(0);
  },
};

describe('work that two bakes share', () => {
  it.each(Object.entries(STEPS))(
    '%s goes on when the bake that began it is gone with its folder',
    async (name, step) => {
      const own = join(dir, createHash('sha256').update(name).digest('hex'));
      const workDir = join(own, 'work');
      const slots = new PQueue({ concurrency: 1 });
      const tools: Tools = { ...testFfmpeg(), ...slow, slots };
      const cache = new DiskCache({ dir: join(own, 'cache'), workDir, maxBytes: 10_000_000, log: silentLog });
      const jobDirs = ['one', 'two'].map((job) => join(own, job));
      for (const jobDir of jobDirs) {
        await mkdir(jobDir, { recursive: true });
        await copyFile(film, join(jobDir, 'film.mp4'));
        await copyFile(voice, join(jobDir, 'voice.wav'));
      }
      const [one = '', two = ''] = jobDirs;
      // The segment’s source has been looked at before; what is shared is the encoding.
      if (name === 'an encoded segment') await STEPS['the look at a source'](tools, cache, one, never);

      slots.pause();
      const leaving = new AbortController();
      const first = step(tools, cache, one, leaving.signal);
      const second = step(tools, cache, two, never);
      second.catch(() => undefined);
      await expect.poll(() => slots.size, { timeout: 10_000 }).toBe(1);
      leaving.abort();
      await expect(first).rejects.toMatchObject({ code: 'aborted' });
      await rm(one, { recursive: true });
      slots.start();
      await second;
    },
  );

  it('has what it reads before the bake that began it is let go, however early that leaves', async () => {
    const own = join(dir, 'early');
    const workDir = join(own, 'work');
    await mkdir(workDir, { recursive: true });
    const cache = new DiskCache({ dir: join(own, 'cache'), workDir, maxBytes: 1000, log: silentLog });
    const fetch = async (name: string, signal: AbortSignal) => {
      const input = join(own, `input-${name}`);
      await writeFile(input, 'what is read');
      const wanted = [{ key: 'c'.repeat(64), target: join(own, name) }];
      await cache.fetch(wanted, signal, async ([path = ''], _, [read = '']) => copyFile(read, path), [input]);
    };
    const leaving = new AbortController();
    const first = fetch('one', leaving.signal);
    const second = fetch('two', never);
    second.catch(() => undefined);
    while ((await readdir(workDir)).length === 0) await setImmediate();
    leaving.abort();
    await first.catch(() => undefined);
    await rm(join(own, 'input-one'));
    await second;
    expect(await readFile(join(own, 'two'), 'utf8')).toBe('what is read');
  });
});
