import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findFfmpeg } from '../../../lib/services/find-ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

let dir: string;

beforeEach(async () => {
  dir = await makeTempDir();
});

async function program(path: string): Promise<string> {
  const file = join(dir, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, '#!/bin/sh\n');
  await chmod(file, 0o755);
  return file;
}

/** Whether an optional package is installed here and brought its program along. */
function packaged(name: string): string | undefined {
  try {
    return String(createRequire(import.meta.url).resolve(name));
  } catch {
    return undefined;
  }
}

describe('ffmpeg', () => {
  it('is the one FFMPEG_PATH names, whatever else there is', async () => {
    const given = await program('given/ffmpeg');
    await program('path/ffmpeg');
    const found = findFfmpeg({ FFMPEG_PATH: given, FFPROBE_PATH: given, PATH: join(dir, 'path') });
    expect(found).toEqual({ ffmpegPath: given, ffprobePath: given, origin: 'FFMPEG_PATH' });
  });

  it('is not looked for elsewhere where FFMPEG_PATH names no program', async () => {
    await program('path/ffmpeg');
    await writeFile(join(dir, 'text'), '');
    for (const given of [join(dir, 'nowhere'), join(dir, 'text'), dir]) {
      expect(() => findFfmpeg({ FFMPEG_PATH: given, PATH: join(dir, 'path') })).toThrow(
        `FFMPEG_PATH is set to ${given},`,
      );
    }
  });

  it.skipIf(packaged('ffmpeg-static'))('is the first on PATH where no package brought one', async () => {
    const first = await program('one/ffmpeg');
    await program('one/ffprobe');
    await program('two/ffmpeg');
    const found = findFfmpeg({ PATH: [join(dir, 'empty'), join(dir, 'one'), join(dir, 'two')].join(':') });
    expect(found).toEqual({ ffmpegPath: first, ffprobePath: join(dir, 'one/ffprobe'), origin: 'PATH' });
  });

  it.skipIf(packaged('ffmpeg-static'))('found nowhere, is an error that names the ways to get it', () => {
    expect(() => findFfmpeg({ PATH: dir })).toThrow(/on PATH .*FFMPEG_PATH/);
    expect(() => findFfmpeg({})).toThrow(/on PATH .*FFMPEG_PATH/);
  });
});

describe('ffprobe', () => {
  it('is the one FFPROBE_PATH names, before the one beside ffmpeg', async () => {
    const ffmpeg = await program('given/ffmpeg');
    await program('given/ffprobe');
    const given = await program('other/ffprobe');
    expect(findFfmpeg({ FFMPEG_PATH: ffmpeg, FFPROBE_PATH: given }).ffprobePath).toBe(given);
  });

  it('is the one beside ffmpeg, before one on PATH', async () => {
    const ffmpeg = await program('given/ffmpeg');
    const beside = await program('given/ffprobe');
    await program('path/ffprobe');
    expect(findFfmpeg({ FFMPEG_PATH: ffmpeg, PATH: join(dir, 'path') }).ffprobePath).toBe(beside);
  });

  it.runIf(packaged('@ffprobe-installer/ffprobe'))('comes from its package, before one on PATH', async () => {
    const ffmpeg = await program('given/ffmpeg');
    await program('path/ffprobe');
    const found = findFfmpeg({ FFMPEG_PATH: ffmpeg, PATH: join(dir, 'path') });
    expect(found.ffprobePath).toContain('@ffprobe-installer');
  });

  it('is not looked for elsewhere where FFPROBE_PATH names no program', async () => {
    const ffmpeg = await program('given/ffmpeg');
    await program('given/ffprobe');
    expect(() => findFfmpeg({ FFMPEG_PATH: ffmpeg, FFPROBE_PATH: '/nowhere' })).toThrow(
      'FFPROBE_PATH is set to /nowhere,',
    );
  });
});
