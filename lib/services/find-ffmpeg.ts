import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { findOnPath, isExecutable } from './find-on-path.ts';

/** Named as the environment variables they come from. */
export interface FfmpegEnv {
  FFMPEG_PATH?: string | undefined;
  FFPROBE_PATH?: string | undefined;
  PATH?: string | undefined;
}

export interface FfmpegBinaries {
  ffmpegPath: string;
  ffprobePath: string;
  /** Where ffmpeg was found. */
  origin: 'FFMPEG_PATH' | 'ffmpeg-static' | 'PATH';
}

/**
 * Finds ffmpeg (FFMPEG_PATH, the package ffmpeg-static, PATH) and ffprobe (FFPROBE_PATH, beside that ffmpeg, the package
 * @ffprobe-installer/ffprobe, PATH). A path that is given but holds no program is an error, never passed over. Both
 * packages are optional: ffmpeg-static downloads its program from GitHub while it is being installed, which need not work.
 */
export function findFfmpeg(env: FfmpegEnv): FfmpegBinaries {
  const { file: ffmpegPath, origin } = locateFfmpeg(env);
  return { ffmpegPath, ffprobePath: locateFfprobe(env, ffmpegPath), origin };
}

function locateFfmpeg(env: FfmpegEnv): { file: string; origin: FfmpegBinaries['origin'] } {
  if (env.FFMPEG_PATH) return { file: givenProgram('FFMPEG_PATH', env.FFMPEG_PATH), origin: 'FFMPEG_PATH' };
  const installed = packagedProgram('ffmpeg-static');
  if (installed) return { file: installed, origin: 'ffmpeg-static' };
  const onPath = findOnPath(['ffmpeg'], env.PATH);
  if (onPath) return { file: onPath, origin: 'PATH' };
  throw new Error(
    'No ffmpeg was found. Install it so that it is on PATH (node scripts/setup.mjs tries to), or set FFMPEG_PATH to the program.',
  );
}

function locateFfprobe(env: FfmpegEnv, ffmpegPath: string): string {
  if (env.FFPROBE_PATH) return givenProgram('FFPROBE_PATH', env.FFPROBE_PATH);
  const beside = join(dirname(ffmpegPath), 'ffprobe');
  if (isExecutable(beside)) return beside;
  const found = packagedProgram('@ffprobe-installer/ffprobe') ?? findOnPath(['ffprobe'], env.PATH);
  if (found) return found;
  throw new Error(
    `No ffprobe was found for ${ffmpegPath}. Install ffmpeg so that both are on PATH, or set FFPROBE_PATH to the program.`,
  );
}

function givenProgram(variable: string, file: string): string {
  if (isExecutable(file)) return file;
  throw new Error(`${variable} is set to ${file}, which is not a program that can be run.`);
}

/** ffmpeg-static exports the path itself, @ffprobe-installer/ffprobe an object that holds it. */
const PackagedProgram = z.union([z.string(), z.object({ path: z.string() }).transform(({ path }) => path)]);

/** Undefined where the package is not installed, or is but brought no program for this machine. */
function packagedProgram(name: 'ffmpeg-static' | '@ffprobe-installer/ffprobe'): string | undefined {
  const require = createRequire(import.meta.url);
  try {
    const file = PackagedProgram.parse(require(name));
    return isExecutable(file) ? file : undefined;
  } catch {
    return undefined;
  }
}
