import { z } from 'zod';
import {
  commaList,
  commonEnv,
  type Env,
  integer,
  mediaUrls,
  parseEnv,
  port,
  postgresUrl,
  redisPrefix,
  redisUrl,
  secret,
  url,
} from './env.ts';
import { keepsPrivatePrivate, outboundEnv, PRIVATE_ONLY_IN_DEVELOPMENT } from './outbound.ts';
import { pipelineEnv } from './pipeline.ts';

/** RFC 7518 §3.2: a key for HS256 has at least the 256 bits of its hash. */
const jwtSecret = z
  .string()
  .min(32, 'expects at least 32 characters: the secret that tokens are signed with')
  .describe('at least 32 characters: the secret that tokens are signed with; or set JWKS_URL');

const SECRETS = [
  'JWT_SECRET',
  'MEDIA_TOKEN',
  'OPS_PASSWORD',
  'BUNNY_READ_ONLY_KEY',
  'BUNNY_WEBHOOK_TOKEN',
  'BUNNY_CDN_TOKEN_KEY',
  'WEBHOOK_SIGNING_KEY',
] as const;

/** How values begin that stand in examples and compose files, and must not go into production. */
const DEVELOPMENT_VALUE = /^(dev|development|test|example|change[-_]?me|insecure|secret|password)([^a-z]|$)/i;

const fields = z.object({
  ...commonEnv,
  EDGE_HOST: z.string().default('127.0.0.1').describe('the address to listen on (default 127.0.0.1)'),
  EDGE_PORT: port(8080),
  METRICS_HOST: z.string().default('127.0.0.1').describe('the address that /metrics listens on (default 127.0.0.1)'),
  METRICS_PORT: port(0),

  DATABASE_URL: postgresUrl,
  DATABASE_POOL: integer(10, 1, 200, 'the most connections to Postgres'),
  REDIS_URL: redisUrl,
  REDIS_PREFIX: redisPrefix,
  RENDER_QUEUE_MAX_MIRRORED: pipelineEnv.RENDER_QUEUE_MAX_MIRRORED,

  MEDIA_URL: mediaUrls,
  MEDIA_TOKEN: secret('the media service’s bearer token'),
  MAX_UPLOAD_BYTES: integer(2_000_000_000, 1, Number.MAX_SAFE_INTEGER, 'bytes that an upload may have'),

  JWT_SECRET: jwtSecret.optional(),
  JWKS_URL: url('the key set of the identity provider').optional(),
  JWT_ISSUER: z.string().optional().describe('what `iss` of a token must be'),
  JWT_AUDIENCE: z.string().optional().describe('what `aud` of a token must hold'),
  OPS_USER: z.string().default('ops').describe('the name for the ops pages (default ops)'),
  OPS_PASSWORD: secret('the password for the ops pages; without it only a token opens them').optional(),
  RATE_PER_TOKEN: integer(1_200, 1, 10_000_000, 'requests a minute of one person, at each edge'),
  RATE_PER_ADDRESS: integer(6_000, 1, 10_000_000, 'requests a minute from one address, at each edge'),
  TRUSTED_PROXIES: integer(0, 0, 10, 'proxies before the edge that add to X-Forwarded-For'),
  CORS_ORIGIN: commaList('origins that browsers may call from').optional(),

  BUNNY_READ_ONLY_KEY: commaList('read-only API keys of the Stream library').optional(),
  BUNNY_WEBHOOK_TOKEN: secret('the ?token= of the webhook’s URL').optional(),
  BUNNY_CDN_URL: url('the pull zone of the Stream library'),
  BUNNY_CDN_TOKEN_KEY: z.string().optional().describe('the token key of the pull zone; without it HLS is not signed'),
  PLAY_URL_TTL_SECONDS: integer(4 * 3600, 60, 7 * 86_400, 'how long a signed play URL is good for, in seconds'),

  WEBHOOK_SIGNING_KEY: outboundEnv.WEBHOOK_SIGNING_KEY,
  WEBHOOK_ALLOW_PRIVATE: outboundEnv.WEBHOOK_ALLOW_PRIVATE,
});

type Fields = z.infer<typeof fields>;

/** Rules over several variables are checked even where others are wrong, so that one look shows all there is to mend. */
const always = { when: () => true };

const edgeEnv = SECRETS.reduce(
  (schema, name) =>
    schema.refine((env) => !isDevelopmentValue(env, name), {
      path: [name],
      error: 'is a development value; production needs a secret of its own',
      ...always,
    }),
  fields
    .refine((env) => env.JWT_SECRET !== undefined || env.JWKS_URL !== undefined, {
      path: ['JWT_SECRET'],
      error: 'expects a secret, or JWKS_URL to be set',
      ...always,
    })
    .refine((env) => env.JWT_SECRET === undefined || env.JWKS_URL === undefined, {
      path: ['JWKS_URL'],
      error: 'cannot be used together with JWT_SECRET',
      ...always,
    })
    .refine((env) => env.BUNNY_READ_ONLY_KEY !== undefined || env.BUNNY_WEBHOOK_TOKEN !== undefined, {
      path: ['BUNNY_READ_ONLY_KEY'],
      error: 'expects a key, or BUNNY_WEBHOOK_TOKEN to be set: the webhook is never open',
      ...always,
    })
    .refine(keepsPrivatePrivate, PRIVATE_ONLY_IN_DEVELOPMENT),
);

function isDevelopmentValue(env: Fields, name: (typeof SECRETS)[number]): boolean {
  if (env.NODE_ENV !== 'production') return false;
  return [env[name] ?? []].flat().some((value) => DEVELOPMENT_VALUE.test(value));
}

export type EdgeConfig = Fields;

/** Throws a `ConfigError` that lists everything wrong. */
export const loadEdgeConfig = (env?: Env): EdgeConfig => parseEnv('edge', edgeEnv, env);
