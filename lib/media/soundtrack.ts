import { BITEXACT_ARGS, inputArgs, OWN_FORMATS } from '../ffmpeg/argv.ts';
import { type Loudness, measureLoudness, SAMPLE_RATE } from '../ffmpeg/decode.ts';
import type { Warning } from './contract.ts';
import { mixBed, type Placed } from './mixer.ts';
import { encode, inSlot, type Tools } from './tools.ts';

/** How ffmpeg is told what `mixBed` yields. */
export const MONO_PCM: readonly string[] = ['-f', 'f32le', '-ar', String(SAMPLE_RATE), '-ac', '1', '-i', 'pipe:0'];

/** Both ears get the same at full strength; measured like that too, or a mono bed would come out 3 LU too loud. */
const TO_STEREO = 'pan=stereo|c0=c0|c1=c0';

/** EBU R 128 and Bunny's players agree on a ceiling of -1 dBTP. */
export const CEILING_DBTP = -1;
/** How far from the recipe's loudness a master may be. */
export const TOLERANCE_LU = 1;
/** Encoding to AAC lifts peaks a little; the limiter starts below and is lowered further where that was not enough. */
const FIRST_LIMIT_DB = -1.5;
const MAX_ENCODES = 4;

export interface Soundtrack extends Loudness {
  /** The gain that was applied. */
  gainDb: number;
  warnings: Warning[];
}

/**
 * Mixes the bed, brings it to `targetLufs` by one static gain (with a limiter where the peaks would pass -1 dBTP) and
 * encodes it once to AAC-LC at `path`. Measured is what a player hears: the decoded AAC. Silence stays silence. The
 * ceiling wins over the target: a bed of few short sounds can end up quieter, which is a warning.
 */
export async function makeSoundtrack(
  tools: Tools,
  bed: { sounds: readonly Placed[]; samples: number },
  options: { targetLufs: number; path: string; signal: AbortSignal; onProgress?: (fraction: number) => void },
): Promise<Soundtrack> {
  const { targetLufs, path, signal } = options;
  const raw = await inSlot(tools, signal, () =>
    measureLoudness({
      ...{ ffmpegPath: tools.ffmpegPath, silenceMs: tools.silenceMs, deadlineMs: tools.deadlineMs, signal },
      ...{ input: MONO_PCM, stdin: mixBed(bed.sounds, bed.samples), filters: `${TO_STEREO},` },
    }),
  );
  options.onProgress?.(0.3);
  const audible = Number.isFinite(raw.lufs);
  let gainDb = audible ? targetLufs - raw.lufs : 0;
  let limitDb = FIRST_LIMIT_DB;
  for (let round = 1; ; round++) {
    const limited = audible && raw.truePeakDb + gainDb > limitDb;
    await encodeBed(tools, bed, { gainDb, limitDb: limited ? limitDb : undefined, path, signal });
    options.onProgress?.(0.3 + 0.15 * round);
    const heard = await measureFile(tools, path, signal);
    const over = heard.truePeakDb - CEILING_DBTP;
    const off = audible ? targetLufs - heard.lufs : 0;
    if (round < MAX_ENCODES && over > 0) {
      limitDb -= over + 0.1;
      continue;
    }
    // Limiting took loudness away; once is enough, because more gain only means more limiting.
    if (round === 1 && Math.abs(off) > TOLERANCE_LU / 2) {
      gainDb += off;
      continue;
    }
    return { ...heard, gainDb, warnings: warningsFor(off, over) };
  }
}

function warningsFor(off: number, over: number): Warning[] {
  return [
    ...(Math.abs(off) > TOLERANCE_LU
      ? [
          {
            code: 'loudness_off_target',
            sentence: `The sound is ${Math.abs(off).toFixed(1)} LU ${off > 0 ? 'quieter' : 'louder'} than asked for, to keep its peaks clean.`,
          },
        ]
      : []),
    ...(over > 0 ? [{ code: 'peaks_high', sentence: 'The loudest peaks of the sound may clip on some players.' }] : []),
  ];
}

async function encodeBed(
  tools: Tools,
  bed: { sounds: readonly Placed[]; samples: number },
  options: { gainDb: number; limitDb: number | undefined; path: string; signal: AbortSignal },
): Promise<void> {
  const limit =
    options.limitDb === undefined
      ? []
      : [
          // At four times the rate, peaks between the samples are seen too.
          `aresample=${SAMPLE_RATE * 4}`,
          `alimiter=limit=${(10 ** (options.limitDb / 20)).toFixed(6)}:level=false:latency=true`,
          `aresample=${SAMPLE_RATE}`,
        ];
  const filters = [
    TO_STEREO,
    `volume=${options.gainDb.toFixed(2)}dB:precision=float`,
    ...limit,
    `apad=whole_len=${bed.samples}`,
    `atrim=end_sample=${bed.samples}`,
  ];
  await encode(tools, options.signal, {
    args: [
      ...[...MONO_PCM, '-af', filters.join(','), '-c:a', 'aac', '-b:a', '128k', '-ar', String(SAMPLE_RATE)],
      ...[...BITEXACT_ARGS, '-f', 'mp4', `file:${options.path}`],
    ],
    stdin: mixBed(bed.sounds, bed.samples),
  });
}

/** The loudness of the first sound track of a file that this program made, as a player hears it. */
export function measureFile(tools: Tools, path: string, signal: AbortSignal): Promise<Loudness> {
  const { ffmpegPath, silenceMs, deadlineMs } = tools;
  return inSlot(tools, signal, () =>
    measureLoudness({ ffmpegPath, silenceMs, deadlineMs, signal, input: inputArgs(path, OWN_FORMATS) }),
  );
}
