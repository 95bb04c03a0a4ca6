import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FPS, type Picture, type Timeline } from '../../../lib/domain/timeline.ts';
import { inputArgs } from '../../../lib/ffmpeg/argv.ts';
import { measureVideo } from '../../../lib/ffmpeg/decode.ts';
import { probe } from '../../../lib/ffmpeg/probe.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { planUnits, type SourceFacts } from '../../../lib/media/plan.ts';
import { rungsFor } from '../../../lib/media/profiles.ts';
import { segmentArgs } from '../../../lib/media/segments.ts';
import { checkSegment } from '../../../lib/media/verify.ts';
import { testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { make } from './harness.ts';

const limits = { silenceMs: 20_000, deadlineMs: 20_000 };
let dir: string;

beforeAll(async () => {
  dir = await makeTempDir();
});

/** A film whose frame n is grey of level 30 + 6 n, so that a picture tells which frame it is. */
const numbered = (name: string, rate: number, extra: string[] = []) =>
  make(dir, name, [
    ...['-f', 'lavfi', '-i', `color=black:s=64x36:r=${rate}:d=1,format=yuv420p,geq=lum='30+6*N':cb=128:cr=128`],
    ...['-c:v', 'libx264', '-qp', '4', ...extra],
  ]);

async function levels(path: string): Promise<number[]> {
  const chunks: Buffer[] = [];
  await runFfmpeg({
    ffmpegPath: testFfmpeg().ffmpegPath,
    args: [...inputArgs(path), '-vf', 'crop=8:8,scale=1:1:flags=area,format=gray', '-f', 'rawvideo', 'pipe:1'],
    ...limits,
    stdout: async (stream) => {
      for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    },
  });
  return [...Buffer.concat(chunks)];
}

async function factsOf(path: string): Promise<SourceFacts> {
  const { ffmpegPath, ffprobePath } = testFfmpeg();
  const { video } = await probe({ ffprobePath, path, timeoutMs: 10_000 });
  if (!video) throw new Error('no video');
  const measure = await measureVideo({ ffmpegPath, path, stream: video.index, maxSeconds: 60, ...limits });
  return { sha256: 'a'.repeat(64), video, ...measure };
}

/** Encodes one segment and resolves to the number of the source frame that each of its frames shows. */
async function shown(path: string, source: SourceFacts, picture: Picture, frames: number): Promise<number[]> {
  const segment = { kind: 'out', startFrame: 0, frames, set: 1, rep: 1, side: 'both', picture } as const;
  const timeline: Timeline = { fps: FPS, frames, segments: [segment], cues: [] };
  const film = await levels(path);
  const found: number[] = [];
  for (const unit of planUnits(timeline, source)) {
    const outputs = rungsFor(source.video)
      .baselines.slice(0, 1)
      .map((profile) => ({ profile, path: join(dir, profile.name) }));
    await runFfmpeg({ ffmpegPath: testFfmpeg().ffmpegPath, args: segmentArgs(path, source, unit, outputs), ...limits });
    for (const output of outputs) await checkSegment(output.path, unit.frames);
    for (const level of await levels(outputs[0]?.path ?? '')) {
      found.push(
        film.reduce(
          (best, each, index) => (Math.abs(each - level) < Math.abs((film[best] ?? 0) - level) ? index : best),
          0,
        ),
      );
    }
  }
  return found;
}

describe('a segment', () => {
  const sources: [string, number, string[]][] = [
    ['thirty.mp4', 30, []],
    ['cinema.mp4', 24, ['-bf', '2']],
    ['early.ts', 24, ['-output_ts_offset', '-9.7']],
    ['late.mkv', 15, ['-output_ts_offset', '3.3']],
  ];
  const clips: [number, number, number][] = [
    [0, 1000, 30],
    [400, 1000, 7],
    [930, 1000, 3],
  ];

  for (const [name, rate, args] of sources) {
    it(`shows the source frame that its time asks for, from first to last (${name})`, async () => {
      const path = await numbered(name, rate, args);
      const source = await factsOf(path);
      for (const [startMs, endMs, frames] of clips) {
        const seen = await shown(path, source, { type: 'clip', startMs, endMs, mirrored: false }, frames);
        expect(seen).toHaveLength(frames);
        for (const [index, number] of seen.entries()) {
          const at = startMs + (index / frames) * (endMs - startMs);
          const due = source.timesMs.filter((time) => time <= at + 0.01).length - 1;
          // A frame between two slots of ours may go to either.
          expect(Math.abs(number - due)).toBeLessThanOrEqual(
            1 + Math.ceil(rate / FPS / (frames / FPS / ((endMs - startMs) / 1000)) / 2),
          );
        }
      }
      const last = source.timesMs.length - 1;
      expect(await shown(path, source, { type: 'still', atMs: 1000, mirrored: true }, 61)).toEqual(
        Array(61).fill(last),
      );
      expect(await shown(path, source, { type: 'still', atMs: 0, mirrored: false }, 1)).toEqual([0]);
    });
  }
});
