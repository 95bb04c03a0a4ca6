import { hostname } from 'node:os';
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
  wholeNumber,
} from './env.ts';
import { keepsPrivatePrivate, outboundEnv, PRIVATE_ONLY_IN_DEVELOPMENT } from './outbound.ts';
import { pipelineEnv } from './pipeline.ts';

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const days = 24 * hours;

/** The schedule that the Standard Webhooks specification gives as its example: the last attempt comes after three days. */
const DELIVERY_RETRIES = [
  5 * seconds,
  5 * minutes,
  30 * minutes,
  2 * hours,
  5 * hours,
  10 * hours,
  14 * hours,
  20 * hours,
  24 * hours,
];

const RETRIES = 'expects milliseconds before each further attempt at a webhook, a billion at most, fifty of them';

const schema = z.object({
  ...commonEnv,
  ...pipelineEnv,
  DATABASE_URL: postgresUrl,
  REDIS_URL: redisUrl,
  REDIS_PREFIX: redisPrefix,
  MEDIA_URL: mediaUrls,
  MEDIA_TOKEN: secret('the bearer token that the media service accepts'),
  MEDIA_POLL_MS: integer(5 * seconds, 50, 10 * minutes, 'milliseconds between two looks at what media can take'),
  MEDIA_CAPACITY: wholeNumber(1, 10_000, 'bakes at once over all workers, instead of what media announces').optional(),
  MEDIA_LOCAL_CAP: integer(1, 1, 100, 'bakes that this worker starts at once while Redis does not answer'),
  WORKER_NAME: z
    .string()
    .min(1)
    .max(100)
    .default(`${hostname()}-${process.pid}`)
    .describe('names this worker in the history of renders'),
  METRICS_HOST: z.string().default('127.0.0.1').describe('the address that /metrics listens on'),
  METRICS_PORT: port(0),
  RENDER_CONCURRENCY: integer(2, 1, 100, 'renders that this worker has under way at once'),
  RENDER_RATE_MAX: integer(0, 0, 1_000_000, 'renders that all workers may start per RENDER_RATE_MS; 0 is no limit'),
  RENDER_RATE_MS: integer(1 * minutes, 100, 24 * hours, 'the span of RENDER_RATE_MAX in milliseconds'),
  RENDER_LEASE_MS: integer(60 * seconds, 300, 1 * hours, 'milliseconds that a claim lasts without a heartbeat'),
  RENDER_SILENCE_MS: integer(
    2 * minutes,
    500,
    1 * hours,
    'milliseconds without a word from media until the call is given up',
  ),
  RENDER_BACKOFF_MAX_MS: integer(10 * minutes, 10, 24 * hours, 'the longest wait between attempts in milliseconds'),
  CONSUME_STALL_MS: integer(
    30 * seconds,
    100,
    1 * hours,
    'milliseconds without a job, though there are some, until the consumer is replaced',
  ),
  WEBHOOK_CONCURRENCY: integer(4, 1, 100, 'webhooks that this worker applies at once'),
  TRANSCODE_DEADLINE_MS: integer(90 * seconds, 100, 24 * hours, 'milliseconds after the upload until Bunny is asked'),
  TRANSCODE_ALARM_MS: integer(4 * hours, 1_000, 7 * 24 * hours, 'milliseconds of transcoding that are an alarm'),
  HISTORY_DAYS: integer(90, 1, 3650, 'days that the history and applied webhooks are kept'),
  WEBHOOK_SIGNING_KEY: outboundEnv.WEBHOOK_SIGNING_KEY,
  WEBHOOK_ALLOW_PRIVATE: outboundEnv.WEBHOOK_ALLOW_PRIVATE,
  DELIVERY_CONCURRENCY: integer(20, 1, 1_000, 'webhooks that this worker sends at once'),
  DELIVERY_PER_ENDPOINT: integer(2, 1, 100, 'webhooks under way at once to one endpoint, over all workers'),
  DELIVERY_POLL_MS: integer(1 * seconds, 10, 1 * hours, 'milliseconds between two looks for webhooks to send'),
  DELIVERY_TIMEOUT_MS: integer(15 * seconds, 50, 5 * minutes, 'milliseconds that a receiver has to answer'),
  DELIVERY_RETRY_MS: commaList(RETRIES)
    .pipe(
      z
        .array(
          z
            .string()
            .regex(/^\d{1,9}$/, RETRIES)
            .transform(Number),
        )
        .max(50, RETRIES),
    )
    .default(DELIVERY_RETRIES)
    .describe(`a comma-separated list: milliseconds before each further attempt (default ${DELIVERY_RETRIES})`),
  DELIVERY_GIVE_UP_MS: integer(
    5 * days,
    0,
    365 * days,
    'milliseconds of nothing but failures that disable an endpoint',
  ),
  DELIVERY_DAYS: integer(30, 1, 3650, 'days that deliveries and their log are kept'),
  SHUTDOWN_MS: integer(25 * seconds, 100, 10 * minutes, 'milliseconds until a shutdown is forced'),
});

const workerEnv = schema.refine(keepsPrivatePrivate, PRIVATE_ONLY_IN_DEVELOPMENT);

export type WorkerConfig = z.infer<typeof schema>;

export const loadWorkerConfig = (env?: Env): WorkerConfig => parseEnv('worker', workerEnv, env);
