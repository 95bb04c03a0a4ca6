import { z } from 'zod';
import {
  commonEnv,
  type Env,
  mediaUrls,
  optionalPort,
  parseEnv,
  postgresUrl,
  redisPrefix,
  redisUrl,
  secret,
  url,
} from './env.ts';
import { pipelineEnv } from './pipeline.ts';

const schema = z.object({
  ...commonEnv,
  ...pipelineEnv,
  BAKEHOUSE_DATA_DIR: z.string().min(1).default('.bakehouse/data').describe('where `up` and `demo` keep everything'),
  DATABASE_URL: postgresUrl.optional(),
  REDIS_URL: redisUrl.optional(),
  REDIS_PREFIX: redisPrefix,
  MEDIA_URL: mediaUrls.optional(),
  MEDIA_TOKEN: secret('the bearer token that the media service accepts').optional(),
  JWT_SECRET: z.string().optional(),
  JWT_ISSUER: z.string().optional(),
  JWT_AUDIENCE: z.string().optional(),
  EDGE_PORT: optionalPort,
  BUNNY_STREAM_URL: url('Bunny Stream; a simulator is started where it is not set').optional(),
  FFMPEG_PATH: z.string().optional(),
  FFPROBE_PATH: z.string().optional(),
  PATH: z.string().optional(),
});

export type CliConfig = z.infer<typeof schema>;

export const loadCliConfig = (env?: Env): CliConfig => parseEnv('bakehouse', schema, env);

/** The environment as it is, for the apps that `up` starts: each of them parses its own part. */
export const inheritedEnv = (): Env => ({ ...process.env });
