import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { commonEnv, type Env, integer, parseEnv, port, secret, url } from './env.ts';

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const MB = 1_000_000;
const GB = 1_000 * MB;

const folder = (name: string, what: string) =>
  z
    .string()
    .min(1)
    .default(join(tmpdir(), 'bakehouse-media', name))
    .describe(`a folder: ${what}`);

const schema = z.object({
  ...commonEnv,
  MEDIA_HOST: z.string().default('127.0.0.1').describe('the address to listen on (default 127.0.0.1)'),
  MEDIA_PORT: port(0),
  MEDIA_TOKEN: secret('the bearer token that callers show'),
  MEDIA_CONCURRENCY: integer(2, 1, 64, 'bakes under way at once; more are turned away with 429'),
  MEDIA_ENCODERS: integer(availableParallelism(), 1, 256, 'ffmpeg processes at once, over all bakes'),
  MEDIA_CACHE_DIR: folder('cache', 'encoded segments and fetched assets; may vanish at any time'),
  MEDIA_CACHE_MAX_BYTES: integer(20 * GB, 1 * MB, Number.MAX_SAFE_INTEGER, 'bytes that the cache may hold'),
  MEDIA_WORK_DIR: folder('work', 'one folder per job, swept at boot; on the file system of the cache, if it can be'),
  MEDIA_MAX_UPLOAD_BYTES: integer(2 * GB, 1, Number.MAX_SAFE_INTEGER, 'bytes that an asset may have'),
  MEDIA_FILE_ROOT: z
    .string()
    .optional()
    .describe('a folder below which file: locations may name assets; they are refused where it is not set'),
  MEDIA_SILENCE_MS: integer(1 * minutes, 100, 1 * hours, 'milliseconds without progress until an ffmpeg is killed'),
  MEDIA_DEADLINE_MS: integer(1 * hours, 100, 24 * hours, 'milliseconds until an ffmpeg is killed in any case'),
  MEDIA_HEARTBEAT_MS: integer(
    2 * seconds,
    50,
    1 * minutes,
    'milliseconds after which a silent bake says that it lives',
  ),
  MEDIA_DRAIN_MS: integer(10 * seconds, 0, 1 * hours, 'milliseconds that bakes under way get when told to stop'),
  FFMPEG_PATH: z.string().optional(),
  FFPROBE_PATH: z.string().optional(),
  PATH: z.string().optional(),
  BUNNY_STREAM_URL: url("Bunny Stream's API").default('https://video.bunnycdn.com'),
  BUNNY_STORAGE_URL: url("the storage zone's regional endpoint").default('https://storage.bunnycdn.com'),
  BUNNY_CDN_URL: url('the pull zone of the video library'),
  BUNNY_STORAGE_CDN_URL: url('the pull zone of the storage zone, where it is another').optional(),
  BUNNY_LIBRARY_ID: z
    .string({ error: 'expects the number of the video library' })
    .regex(/^\d+$/, 'expects the number of the video library')
    .describe('the number of the video library'),
  BUNNY_STREAM_KEY: secret("the library's read/write key"),
  BUNNY_TITLE_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/, 'expects 1 to 64 letters, digits, spaces, . _ or -: how titles begin')
    .default('bakehouse')
    .describe('what the titles of our videos begin with (default bakehouse)'),
  BUNNY_STORAGE_ZONE: z.string().min(1).describe('the name of the storage zone'),
  BUNNY_STORAGE_KEY: secret("the zone's password"),
});

/** Bunny's own hosts: a real library's pull zone serves its videos and nothing of the storage zone. */
const REAL_BUNNY = /(^|\.)(bunnycdn\.com|b-cdn\.net)$/;

const mediaEnv = schema.refine(
  (env) => env.BUNNY_STORAGE_CDN_URL !== undefined || !REAL_BUNNY.test(new URL(env.BUNNY_STREAM_URL).hostname),
  {
    path: ['BUNNY_STORAGE_CDN_URL'],
    error: 'expects the pull zone of the storage zone: the video library’s own does not serve what is stored there',
    // As long as the address itself is one; the other problems are listed beside this.
    when: ({ value }) => URL.canParse(String((value as { BUNNY_STREAM_URL?: unknown }).BUNNY_STREAM_URL)),
  },
);

export type MediaConfig = z.infer<typeof schema>;

/** Reads the media service's environment; throws a `ConfigError` naming what is wrong. */
export const loadMediaConfig = (env?: Env): MediaConfig => parseEnv('media', mediaEnv, env);
