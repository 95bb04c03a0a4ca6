import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { DiskCache } from '../../../lib/media/disk-cache.ts';
import { sweepJobDirs, withJobDir } from '../../../lib/media/job-dir.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

const never = new AbortController().signal;
const keyOf = (name: string) => Buffer.from(name).toString('hex').padEnd(64, '0');

let dir: string;
let made: string[];
beforeEach(async () => {
  dir = await makeTempDir();
  made = [];
});

const open = (maxBytes = 1000) =>
  new DiskCache({ dir: join(dir, 'cache'), workDir: join(dir, 'work'), maxBytes, log: silentLog });

/** Fetches an entry of 100 bytes into a place of its own and reads it. */
async function fetch(cache: DiskCache, name: string, signal = never) {
  const target = join(dir, `out-${Math.random()}`);
  const { reused } = await cache.fetch([{ key: keyOf(name), target }], signal, async ([path = '']) => {
    made.push(name);
    await writeFile(path, name.padEnd(100, '.'));
  });
  expect(await readFile(target, 'utf8')).toBe(name.padEnd(100, '.'));
  return { reused, target };
}

describe('the disk cache', () => {
  it('makes an entry once, also for those who ask at the same time and for the next process', async () => {
    const cache = open();
    const results = await Promise.all([fetch(cache, 'a'), fetch(cache, 'a'), fetch(cache, 'a')]);
    expect(results.filter(({ reused }) => !reused)).toHaveLength(1);
    expect((await fetch(open(), 'a')).reused).toBe(true);
    expect(made).toEqual(['a']);
    expect(await readdir(join(dir, 'work'))).toEqual([]);
  });

  it('makes files of one run together, and again together when one is lost', async () => {
    const cache = open();
    const pair = (round: number) =>
      ['x', 'y'].map((name) => ({ key: keyOf(name), target: join(dir, `${name}${round}`) }));
    const make = async (paths: string[]) => {
      made.push('run');
      await Promise.all(paths.map((path, index) => writeFile(path, String(index))));
    };
    await cache.fetch(pair(1), never, make);
    expect((await cache.fetch(pair(2), never, make)).reused).toBe(true);
    await cache.drop([keyOf('y')]);
    expect((await cache.fetch(pair(3), never, make)).reused).toBe(false);
    expect(await readFile(join(dir, 'y3'), 'utf8')).toBe('1');
    expect(made).toEqual(['run', 'run']);
  });

  it('stays below its cap by dropping what was not used for longest, never what a job holds', async () => {
    const cache = open(350);
    const first = await fetch(cache, 'a');
    for (const name of ['b', 'c']) await fetch(cache, name);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await fetch(cache, 'a');
    for (const name of ['d', 'e']) await fetch(cache, name);
    expect(cache.bytes).toBeLessThanOrEqual(350);
    made = [];
    await fetch(cache, 'a');
    expect(made).toEqual([]);
    await fetch(cache, 'b');
    expect(made).toEqual(['b']);
    expect(await readFile(first.target, 'utf8')).toContain('a');
  });

  it('knows the sizes and the order of use of what an earlier process left', async () => {
    const earlier = open();
    for (const name of ['a', 'b', 'c', 'd']) await fetch(earlier, name);
    const later = open(250);
    await fetch(later, 'd');
    expect(later.bytes).toBeLessThanOrEqual(250);
  });

  it('outlives its folder, before and while an entry is made, and a folder that cannot be written', async () => {
    const cache = open();
    await fetch(cache, 'a');
    await rm(join(dir, 'cache'), { recursive: true });
    expect((await fetch(cache, 'a')).reused).toBe(false);
    const target = join(dir, 'b');
    await cache.fetch([{ key: keyOf('b'), target }], never, async ([path = '']) => {
      await rm(join(dir, 'cache'), { recursive: true });
      await writeFile(path, 'b');
    });
    expect(await readFile(target, 'utf8')).toBe('b');
    await rm(join(dir, 'cache'), { recursive: true, force: true });
    await writeFile(join(dir, 'cache'), 'a file where the folder should be');
    expect((await fetch(open(), 'c')).reused).toBe(false);
  });

  it('keeps nothing of a run that failed or was stopped', async () => {
    const cache = open();
    const target = join(dir, 'x');
    const failing = cache.fetch([{ key: keyOf('x'), target }], never, async ([path = '']) => {
      await writeFile(path, 'half');
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    const controller = new AbortController();
    const stopped = cache.fetch([{ key: keyOf('x'), target }], controller.signal, async ([path = ''], signal) => {
      await writeFile(path, 'half');
      controller.abort();
      if (signal.aborted) throw new Error('stopped');
    });
    await expect(stopped).rejects.toMatchObject({ code: 'aborted' });
    expect((await fetch(cache, 'x')).reused).toBe(false);
    expect(await readdir(join(dir, 'work'))).toEqual([]);
  });
});

describe('the folder of a job', () => {
  it('is gone when the job ends, however it ends', async () => {
    const inside = await withJobDir(join(dir, 'work'), async (job) => {
      await writeFile(join(job, 'file'), 'x');
      return readdir(join(dir, 'work'));
    });
    expect(inside).toHaveLength(1);
    await expect(withJobDir(join(dir, 'work'), () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await readdir(join(dir, 'work'))).toEqual([]);
  });

  it('is swept when its process is no more, and left alone when it lives', async () => {
    const work = join(dir, 'work');
    const host = hostname().replaceAll(/[^A-Za-z0-9]/g, '_');
    const [dead, mine, alive, elsewhere] = [
      `job-${host}-2147483646-dead`,
      `job-${host}-${process.pid}-mine`,
      `job-${host}-${process.ppid}-alive`,
      'job-another_host-1-alive',
    ];
    for (const name of [dead, mine, alive, elsewhere, 'something-else']) {
      await mkdir(join(work, name), { recursive: true });
    }
    expect((await sweepJobDirs(work)).sort()).toEqual([dead, mine].sort());
    expect((await readdir(work)).sort()).toEqual([alive, elsewhere, 'something-else'].sort());
  });
});
