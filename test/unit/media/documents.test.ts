import { describe, expect, it } from 'vitest';
import { normaliseRecipe, recipeHash } from '../../../lib/domain/recipe.ts';
import { buildTimeline, type Timeline } from '../../../lib/domain/timeline.ts';
import { captions } from '../../../lib/media/captions.ts';
import { type ComposeLine, composeLine, composeRequest } from '../../../lib/media/contract.ts';
import { buildManifest, manifestSchema } from '../../../lib/media/manifest.ts';
import { ndjsonLines } from '../../../lib/media/ndjson.ts';
import { ProgressTracker } from '../../../lib/media/progress.ts';
import { checkRequest } from '../../../lib/media/request.ts';
import { aRecipe } from '../../support/recipes.ts';

describe('captions', () => {
  const cue = (frame: number, text: string) => ({ name: 'x', frame, text, voiced: true });
  const timeline = (frames: number, cues: Timeline['cues']): Timeline => ({ fps: 30, frames, segments: [], cues });

  it('show each cue from its frame until the next, for three seconds at most', () => {
    expect(captions(timeline(600, [cue(0, 'Start'), cue(45, '1'), cue(300, 'Done')]))).toBe(
      [
        ...['WEBVTT', '', '00:00:00.000 --> 00:00:01.500', 'Start', '', '00:00:01.500 --> 00:00:04.500', '1', ''],
        ...['00:00:10.000 --> 00:00:13.000', 'Done', ''],
      ].join('\n'),
    );
  });

  it('share a caption where cues fall together, end with the video, and escape what would be markup', () => {
    const text = captions(timeline(108_030, [cue(108_000, 'A & B'), cue(108_000, '<i>')]));
    expect(text).toBe('WEBVTT\n\n01:00:00.000 --> 01:00:01.000\nA &amp; B\n&lt;i&gt;\n');
  });

  it('are none where nothing is said', () => {
    expect(captions(timeline(300, []))).toBeUndefined();
  });
});

describe('the manifest', () => {
  it('fits its own schema and tells offsets in milliseconds', () => {
    const recipe = normaliseRecipe(aRecipe({ sides: 'left-right' }));
    const timeline = buildTimeline(recipe);
    const file = { url: 'http://cdn/x', sha256: 'c'.repeat(64), bytes: 1 };
    const manifest = buildManifest({
      ...{ recipeHash: recipeHash(recipe), recipe, timeline, toolchain: 'd'.repeat(64) },
      files: { master: { ...file, width: 1280, height: 720 }, baselines: [], poster: file, captions: null },
      quality: { lufs: -16, truePeakDb: -1.2, targetLufs: -16, warnings: [] },
    });
    expect(manifestSchema.parse(JSON.parse(JSON.stringify(manifest)))).toEqual(manifest);
    expect(manifest.cues).toHaveLength(timeline.cues.length);
    for (const { offsetMs, frame } of manifest.cues) expect(Math.abs(offsetMs - (frame * 1000) / 30)).toBeLessThan(1);
    expect(manifest.timeline.at(-1)?.endMs).toBe(manifest.durationMs);
  });
});

describe('progress', () => {
  it('never falls, whatever order the stages report in, and ends at a hundred', () => {
    const lines: ComposeLine[] = [];
    let now = 0;
    const progress = new ProgressTracker(
      (line) => lines.push(line),
      () => now,
    );
    for (const [stage, fraction] of [
      ...[
        ['stage', 0],
        ['audio', 0.5],
        ['segments', 0.1],
        ['segments', 0.05],
        ['stage', 1],
        ['segments', 1],
      ],
      ...[
        ['audio', 1],
        ['mux', 1],
        ['verify', 2],
        ['artefacts', 1],
        ['store', 1],
        ['upload', 1],
      ],
    ] as const) {
      now += 1000;
      progress.at(stage, fraction);
    }
    const percents = lines.map((line) => (line.type === 'progress' ? line.percent : -1));
    expect(percents).toEqual([...percents].sort((a, b) => a - b));
    expect(percents.at(-1)).toBe(100);
    expect(lines.at(-1)).toMatchObject({ etaMs: 0 });
    expect(lines[0]).toMatchObject({ etaMs: null });
    for (const line of lines) expect(composeLine.parse(line)).toEqual(line);
  });
});

describe('lines of JSON', () => {
  const read = async (...chunks: string[]) => {
    const values: unknown[] = [];
    const source = (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk, 'latin1');
    })();
    for await (const value of ndjsonLines(source)) values.push(value);
    return values;
  };

  it('are put together across chunks, characters included, and need no newline at the end', async () => {
    expect(await read('{"a":', '1}\n\n{"b":"', '\xc3', '\xa9"}')).toEqual([{ a: 1 }, { b: 'é' }]);
  });

  it('are a failure of the protocol where they are not JSON or have no end', async () => {
    await expect(read('{"a":1}\nnot json\n')).rejects.toMatchObject({ code: 'media_protocol' });
    await expect(read('x'.repeat(2_000_000))).rejects.toMatchObject({ code: 'media_protocol' });
  });
});

describe('a request', () => {
  const recipe = normaliseRecipe(aRecipe());
  const request = {
    ...{ renderId: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0001', recipeHash: recipeHash(recipe), recipe },
    assets: [{ sha256: 'a'.repeat(64), location: 'zone:assets/platform/aaa' }],
  };

  it('is accepted as the worker writes it', () => {
    expect(() => checkRequest(composeRequest.parse(request))).not.toThrow();
  });

  it('is refused for a hash that is not its recipe, an asset that is missing and an hour too much', () => {
    const refused = (change: object) => () => checkRequest(composeRequest.parse({ ...request, ...change }));
    expect(refused({ recipeHash: 'f'.repeat(64) })).toThrow(expect.objectContaining({ code: 'recipe_invalid' }));
    expect(refused({ assets: [{ sha256: 'b'.repeat(64), location: 'zone:assets/b' }] })).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    );
    const long = normaliseRecipe(aRecipe({ sets: 20, reps: 100, restSeconds: 600 }));
    expect(refused({ recipe: long, recipeHash: recipeHash(long) })).toThrow(
      expect.objectContaining({ code: 'recipe_too_long' }),
    );
  });
});
