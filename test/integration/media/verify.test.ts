import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import { beforeAll, describe, expect, it } from 'vitest';
import { SAMPLE_RATE } from '../../../lib/ffmpeg/decode.ts';
import type { Placed } from '../../../lib/media/mixer.ts';
import { readMp4 } from '../../../lib/media/mp4.ts';
import { CEILING_DBTP, makeSoundtrack } from '../../../lib/media/soundtrack.ts';
import type { Tools } from '../../../lib/media/tools.ts';
import { checkCopied, checkDecodes, checkFile, checkSegment } from '../../../lib/media/verify.ts';
import { testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { make } from './harness.ts';

const signal = new AbortController().signal;
const tools: Tools = {
  ...testFfmpeg(),
  ...{ fingerprint: 'f'.repeat(64), slots: new PQueue({ concurrency: 2 }) },
  ...{ silenceMs: 20_000, deadlineMs: 30_000, probeTimeoutMs: 10_000 },
};
const refused = { code: 'verify_failed', retryable: true };

let dir: string;
let red: string;
let blue: string;
let sound: string;

const segment = (name: string, colour: string, extra: string[] = []) =>
  make(dir, name, [
    ...[
      '-f',
      'lavfi',
      '-i',
      `color=${colour}:s=64x64:r=30:d=1`,
      '-c:v',
      'libx264',
      '-bf',
      '0',
      '-x264-params',
      'stitchable=1',
    ],
    ...['-video_track_timescale', '15360', ...extra],
  ]);

/** Puts segments and sound into one file, as they are. */
async function join2(name: string, pictures: string[], extra: string[] = ['-movflags', '+faststart']): Promise<string> {
  const list = join(dir, `${name}.txt`);
  await writeFile(list, pictures.map((path) => `file '${path}'\n`).join(''));
  return make(dir, name, [
    ...['-f', 'concat', '-safe', '0', '-auto_convert', '0', '-i', list, '-i', sound, '-map', '0:v', '-map', '1:a'],
    ...['-c', 'copy', '-video_track_timescale', '15360', ...extra],
  ]);
}

beforeAll(async () => {
  dir = await makeTempDir();
  red = await segment('red.mp4', 'red');
  blue = await segment('blue.mp4', 'blue');
  sound = await make(dir, 'sound.m4a', ['-f', 'lavfi', '-i', 'sine=sample_rate=48000:duration=2', '-c:a', 'aac']);
});

describe('a segment is refused', () => {
  it('with another number of frames, another rate, frames out of order, a second track, or cut off', async () => {
    expect(await checkSegment(red, 30)).toBe(await checkSegment(blue, 30));
    await expect(checkSegment(red, 29)).rejects.toMatchObject(refused);
    const bad = [
      await segment('vfr.mp4', 'red', ['-vf', "select='not(eq(n,7))'", '-fps_mode', 'vfr', '-frames:v', '30']),
      await make(dir, 'reordered.mp4', [
        ...[
          '-f',
          'lavfi',
          '-i',
          'testsrc2=s=64x64:r=30:d=1',
          '-c:v',
          'libx264',
          '-bf',
          '2',
          '-video_track_timescale',
          '15360',
        ],
      ]),
      await join2('both.mp4', [red]),
      join(dir, 'cut.mp4'),
      join(dir, 'missing.mp4'),
    ];
    const whole = await readFile(red);
    await writeFile(join(dir, 'cut.mp4'), whole.subarray(0, whole.length - 100));
    for (const path of bad) await expect(checkSegment(path, 30)).rejects.toMatchObject(refused);
  });

  it('whose headers differ from the others', async () => {
    const other = await segment('other.mp4', 'red', ['-profile:v', 'baseline']);
    expect(await checkSegment(other, 30)).not.toBe(await checkSegment(red, 30));
  });

  it('that does not decode', async () => {
    const hurt = join(dir, 'hurt.mp4');
    await copyFile(red, hurt);
    const bytes = await readFile(hurt);
    const media = bytes.indexOf('mdat', 0, 'latin1') + 4;
    for (let at = media + 700; at < bytes.length && at < media + 900; at++) bytes[at] = 0xff;
    await writeFile(hurt, bytes);
    await checkDecodes(tools, [red, blue], signal);
    await expect(checkDecodes(tools, [red, hurt], signal)).rejects.toMatchObject(refused);
  });
});

describe('a finished file is refused', () => {
  it('with its index at the end, without sound, or with sound of another length', async () => {
    await checkFile(await join2('good.mp4', [red, blue]), 60);
    const bad: [string, number][] = [
      [await join2('slow-start.mp4', [red, blue], []), 60],
      [red, 30],
      [await join2('short-picture.mp4', [red]), 30],
    ];
    for (const [path, frames] of bad) await expect(checkFile(path, frames)).rejects.toMatchObject(refused);
  });

  it('when a segment is missing, doubled, in another place or another one, and when the sound is another', async () => {
    const path = await join2('mix.mp4', [red, blue, red]);
    const other = await make(dir, 'other.m4a', [
      '-f',
      'lavfi',
      '-i',
      'sine=500:sample_rate=48000:duration=2',
      '-c:a',
      'aac',
    ]);
    await checkCopied(tools, [{ path, pictures: [red, blue, red] }], sound, signal);
    for (const pictures of [
      [red, blue],
      [red, blue, red, red],
      [blue, red, red],
      [red, red, red],
    ]) {
      await expect(checkCopied(tools, [{ path, pictures }], sound, signal)).rejects.toMatchObject(refused);
    }
    const pictures = [red, blue, red];
    await expect(checkCopied(tools, [{ path, pictures }], other, signal)).rejects.toMatchObject(refused);
    const second = await join2('second.mp4', [blue, red]);
    await checkCopied(
      tools,
      [
        { path, pictures },
        { path: second, pictures: [blue, red] },
      ],
      sound,
      signal,
    );
    await expect(
      checkCopied(
        tools,
        [
          { path, pictures },
          { path: second, pictures: [red, blue] },
        ],
        sound,
        signal,
      ),
    ).rejects.toMatchObject(refused);
  });

  it('when it is no MP4 of ours at all', async () => {
    const noise = join(dir, 'noise.mp4');
    for (const bytes of [Buffer.alloc(0), Buffer.from('not a film'), Buffer.alloc(100, 0xff), Buffer.alloc(64)]) {
      await writeFile(noise, bytes);
      await expect(readMp4(noise)).rejects.toMatchObject(refused);
    }
  });
});

describe('a soundtrack', () => {
  const click = (samples: Float32Array, second: number): Placed => ({
    ...{ at: second * SAMPLE_RATE, length: samples.length, load: async () => samples },
  });

  it('keeps its peaks below -1 dBTP where the loudness asked for would not, and says what that costs', async () => {
    // Short and sharp: far more peak than loudness.
    const sharp = Float32Array.from({ length: 24_000 }, (_, i) =>
      i % 4_800 < 24 ? Math.sin(i * 1.3) : 0.002 * Math.sin(i / 20),
    );
    const path = join(dir, 'sharp.m4a');
    const sounds = [0, 1, 2, 3].map((second) => click(sharp, second));
    const made = await makeSoundtrack(tools, { sounds, samples: 5 * SAMPLE_RATE }, { targetLufs: -10, path, signal });
    expect(made.truePeakDb).toBeLessThanOrEqual(CEILING_DBTP);
    expect(made.lufs).toBeLessThan(-11);
    expect(made.warnings.map(({ code }) => code)).toEqual(['loudness_off_target']);
    const [track] = (await readMp4(path)).tracks;
    expect(track?.duration).toBeGreaterThanOrEqual(5 * SAMPLE_RATE);
  });

  it('of nothing stays silent, with no gain', async () => {
    const made = await makeSoundtrack(
      tools,
      { sounds: [], samples: SAMPLE_RATE },
      { targetLufs: -16, path: join(dir, 'nothing.m4a'), signal },
    );
    expect(made).toEqual({
      lufs: Number.NEGATIVE_INFINITY,
      truePeakDb: Number.NEGATIVE_INFINITY,
      gainDb: 0,
      warnings: [],
    });
  });
});
