import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildTimeline, msOfFrame } from '../../../lib/domain/timeline.ts';
import { inputArgs } from '../../../lib/ffmpeg/argv.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { make, type RunningMedia, requestFor, startMedia } from './harness.ts';

let media: RunningMedia;
let dir: string;

beforeAll(async () => {
  dir = await makeTempDir();
  media = await startMedia();
});
afterAll(() => media.close());

/** Left half red, right half blue. */
function halves(size: `${number}x${number}`, rate: number, seconds: number): string {
  const [width = 0, height = 0] = size.split('x').map(Number);
  const left = Math.floor(width / 2);
  const half = (colour: string, wide: number) => `color=${colour}:s=${wide}x${height}:r=${rate}:d=${seconds}`;
  return `${half('red', left)}[left];${half('blue', width - left)}[right];[left][right]hstack`;
}
const lavfi = (graph: string) => ['-f', 'lavfi', '-i', graph];
const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];

/** The shortest dose, as a timeline and as what was made of it. */
async function bakeOf(file: string, change: Parameters<typeof requestFor>[1] = {}) {
  const source = await media.upload(file);
  expect(source.report.errors).toEqual([]);
  const request = requestFor(source, { reps: 1, cues: 'none', leadInSeconds: 0, ...change });
  const { done } = await media.bake(request);
  const manifest = await media.manifestOf(done.manifestUrl);
  expect(manifest.frames).toBe(buildTimeline(request.recipe).frames);
  expect(done.durationMs).toBe(msOfFrame(manifest.frames));
  const path = join(dir, `${manifest.master.sha256}.mp4`);
  await writeFile(path, await media.stored(manifest.master.url));
  return { manifest, path, report: source.report };
}

/** Mean colour of the four quarters of a picture's middle, from left to right and top to bottom. */
async function quarters(path: string): Promise<string[]> {
  const chunks: Buffer[] = [];
  await runFfmpeg({
    ffmpegPath: testFfmpeg().ffmpegPath,
    args: [
      ...[...inputArgs(path), '-frames:v', '1'],
      ...['-vf', 'format=rgb24,crop=iw/2:ih/2,scale=2:2:flags=area', '-pix_fmt', 'rgb24'],
      ...['-f', 'rawvideo', 'pipe:1'],
    ],
    ...{ silenceMs: 20_000, deadlineMs: 20_000 },
    stdout: async (stream) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    },
  });
  const rgb = Buffer.concat(chunks);
  return [0, 1, 2, 3].map((quarter) => {
    const [red = 0, green = 0, blue = 0] = rgb.subarray(quarter * 3, quarter * 3 + 3);
    if (green > 90) return 'other';
    return red > blue + 80 ? 'red' : blue > red + 80 ? 'blue' : 'other';
  });
}

/** Writes a clockwise quarter turn into the first track header (ISO/IEC 14496-12 8.3.2), as phones do. */
async function turn(file: string): Promise<string> {
  const bytes = await readFile(file);
  const matrix = bytes.indexOf('tkhd', 0, 'latin1') + 4 + 40;
  for (const [index, value] of [0, 0x10000, 0, 0xffff0000, 0, 0, 180 << 16, 0, 0x40000000].entries()) {
    bytes.writeUInt32BE(value, matrix + index * 4);
  }
  const turned = `${file}.turned.mp4`;
  await writeFile(turned, bytes);
  return turned;
}

describe('a source of any awkward kind becomes a master of the exact length', () => {
  const kinds: Record<string, { name: string; args: string[]; warning?: string }> = {
    'with a variable frame rate': {
      name: 'vfr.mp4',
      args: [...lavfi(halves('320x180', 30, 2)), '-vf', "select='lt(n,15)+not(mod(n,5))'", '-fps_mode', 'vfr', ...x264],
      warning: 'variable_frame_rate',
    },
    'with one frame a second': {
      name: 'slow.mp4',
      args: [...lavfi(halves('320x180', 1, 3)), ...x264],
      warning: 'low_frame_rate',
    },
    'of odd size and without subsampled colour': {
      name: 'odd.mp4',
      args: [...lavfi(halves('161x121', 25, 1.2)), '-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv444p'],
    },
    'with oblong pixels': {
      name: 'sar.mp4',
      args: [...lavfi(halves('320x180', 25, 1.2)), '-vf', 'setsar=3/2', ...x264],
    },
    'interlaced, in a transport stream that starts before zero': {
      name: 'interlaced.ts',
      args: [
        ...[...lavfi(halves('720x576', 50, 1.4)), '-vf', 'tinterlace=interleave_top', ...x264],
        ...['-flags', '+ildct+ilme', '-x264-params', 'tff=1', '-output_ts_offset', '-9.7'],
      ],
      warning: 'interlaced',
    },
    'of ten bits and high dynamic range': {
      name: 'hlg.mp4',
      args: [
        ...[...lavfi(halves('320x180', 25, 1.2)), '-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p10le'],
        // From ffmpeg 7 on what the frames say of their colours wins over what the encoder is told.
        ...['-vf', 'setparams=color_trc=arib-std-b67:color_primaries=bt2020:colorspace=bt2020nc'],
        ...['-color_trc', 'arib-std-b67', '-color_primaries', 'bt2020', '-colorspace', 'bt2020nc'],
      ],
      warning: 'hdr',
    },
    'with full-range colour that starts late, beside sound that does not': {
      name: 'late.mp4',
      args: [
        ...['-itsoffset', '0.8', ...lavfi(halves('320x180', 25, 1.2)), ...lavfi('sine=duration=1')],
        ...['-vf', 'scale=out_range=pc', ...x264, '-pix_fmt', 'yuvj420p', '-color_range', 'pc'],
      ],
    },
    'with transparency': {
      name: 'alpha.mov',
      args: [...lavfi(halves('320x180', 25, 1.2)), '-c:v', 'qtrle', '-pix_fmt', 'argb'],
    },
    'as an animated picture': { name: 'anim.gif', args: lavfi(halves('161x121', 25, 1.2)) },
    'with two pictures and two sounds': {
      name: 'several.mkv',
      args: [
        ...[...lavfi(halves('320x180', 25, 1.2)), ...lavfi('testsrc2=duration=3'), ...lavfi('sine=duration=2')],
        ...['-map', '0', '-map', '1', '-map', '2', '-map', '2', ...x264],
      ],
    },
  };

  for (const [kind, { name, args, warning }] of Object.entries(kinds)) {
    it(kind, async () => {
      const { path, report } = await bakeOf(await make(dir, name, args));
      if (warning !== undefined) expect(report.warnings.map(({ code }) => code)).toContain(warning);
      expect(await quarters(path)).toEqual(['red', 'blue', 'red', 'blue']);
    });
  }
});

describe('what is seen', () => {
  it('stands upright where the camera was turned', async () => {
    const file = await make(dir, 'flat.mp4', [...lavfi(halves('320x180', 25, 1.2)), ...x264]);
    const { manifest, path } = await bakeOf(await turn(file));
    expect(manifest.master).toMatchObject({ width: 720, height: 1280 });
    expect(await quarters(path)).toEqual(['red', 'red', 'blue', 'blue']);
  });

  it('is mirrored on the right side', async () => {
    const file = await make(dir, 'sides.mp4', [...lavfi(halves('320x180', 25, 1.2)), ...x264]);
    const { manifest, path } = await bakeOf(file, { sides: 'alternating' });
    const right = manifest.timeline.find(({ side }) => side === 'right');
    const frame = await make(dir, 'right.mkv', [
      ...['-ss', String((right?.startMs ?? 0) / 1000 + 0.1), '-i', path, '-frames:v', '1', '-c:v', 'ffv1'],
    ]);
    expect(await quarters(path)).toEqual(['red', 'blue', 'red', 'blue']);
    expect(await quarters(frame)).toEqual(['blue', 'red', 'blue', 'red']);
  });

  it('cannot be marked behind the end of the film', async () => {
    const file = await make(dir, 'brief.mp4', [...lavfi(halves('320x180', 25, 1)), ...x264]);
    const source = await media.upload(file);
    const marked = { sha256: source.sha256, startMs: 0, turnMs: 500, endMs: 1500 };
    await expect(media.bake(requestFor(source, { source: marked }))).rejects.toMatchObject({
      ...{ code: 'source_too_short', retryable: false },
      message: 'The marked repetition ends after the end of the source video.',
    });
  });
});
