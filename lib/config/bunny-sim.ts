import { z } from 'zod';
import { commonEnv, type Env, flag, integer, parseEnv, port, secret, url, wholeNumber } from './env.ts';

const faults = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: 'custom', message: 'expects JSON: the faults to start with' });
      return z.NEVER;
    }
  })
  .optional()
  .describe('JSON: the faults to start with, as POST /sim/faults takes them');

/** The keys must all differ, so that a mix-up shows here and not on the day of going live. */
const distinct = (keys: (string | undefined)[]) => {
  const given = keys.filter((key) => key !== undefined);
  return new Set(given).size === given.length;
};

const schema = z.object({
  ...commonEnv,
  SIM_HOST: z.string().default('127.0.0.1').describe('the address to listen on (default 127.0.0.1)'),
  SIM_STREAM_PORT: port(0),
  SIM_STORAGE_PORT: port(0),
  SIM_CDN_PORT: port(0),
  SIM_DATA_DIR: z.string().describe('a folder of its own; everything the simulator knows lives there'),
  SIM_WEBHOOK_URL: url('where webhooks are sent; none are where it is not set').optional(),
  SIM_FAST: flag(false, 'start no process: read the length from the MP4 header and serve a token ladder'),
  SIM_FAULTS: faults,
  SIM_TRANSCODE_CONCURRENCY: integer(1, 1, 16, 'videos transcoded at a time'),
  FFMPEG_PATH: z.string().optional(),
  FFPROBE_PATH: z.string().optional(),
  PATH: z.string().optional(),
  BUNNY_LIBRARY_ID: wholeNumber(1, Number.MAX_SAFE_INTEGER, 'the number of the video library'),
  BUNNY_STREAM_KEY: secret("the library's read/write key"),
  BUNNY_READ_ONLY_KEY: secret("the library's read-only key, which also signs webhooks"),
  BUNNY_STORAGE_ZONE: z
    .string()
    .regex(/^[a-z0-9-]+$/i, 'expects letters, digits and hyphens: the name of the storage zone')
    .describe('the name of the storage zone'),
  BUNNY_STORAGE_KEY: secret("the zone's password"),
  BUNNY_STORAGE_READ_KEY: secret("the zone's read-only password"),
  BUNNY_CDN_TOKEN_KEY: secret("the pull zone's token key; unsigned playback is refused where it is set").optional(),
});

export type BunnySimConfig = z.infer<typeof schema>;

/** Reads the simulator's environment; throws a `ConfigError` naming what is wrong. */
export function loadBunnySimConfig(env?: Env): BunnySimConfig {
  return parseEnv(
    'bunny-sim',
    schema.refine(
      (given) =>
        distinct([
          given.BUNNY_STREAM_KEY,
          given.BUNNY_READ_ONLY_KEY,
          given.BUNNY_STORAGE_KEY,
          given.BUNNY_STORAGE_READ_KEY,
          given.BUNNY_CDN_TOKEN_KEY,
        ]),
      { path: ['BUNNY_STREAM_KEY'], error: 'expects keys that all differ from one another' },
    ),
    env,
  );
}
