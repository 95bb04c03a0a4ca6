import { z } from 'zod';
import { integer } from './env.ts';

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;

/** What everyone who moves renders must agree on: the workers, and an operator's commands beside them. */
export const pipelineEnv = {
  RENDER_BACKOFF_MS: integer(5 * seconds, 10, 1 * hours, 'milliseconds before the second attempt; doubles from there'),
  RENDER_REDISPATCH_MS: integer(
    2 * minutes,
    100,
    24 * hours,
    'milliseconds after which a dispatched, unclaimed render is checked',
  ),
  RENDER_QUEUE_MAX_MIRRORED: integer(
    2_000,
    1,
    100_000,
    'renders that the queue holds at once; the rest waits in Postgres',
  ),
  READY_ON: z
    .enum(['finished', 'playable'], { error: 'expects finished or playable: how far Bunny must be' })
    .default('finished')
    .describe('finished or playable: how far Bunny must be'),
  TRANSCODE_POLL_MS: integer(60 * seconds, 100, 24 * hours, 'milliseconds between such questions'),
  TRANSCODE_GIVE_UP_MS: integer(
    24 * hours,
    100,
    30 * 24 * hours,
    'milliseconds of transcoding after which the video is made anew',
  ),
  RECONCILE_MS: integer(1 * hours, 100, 7 * 24 * hours, 'milliseconds between two runs of reconcile'),
  RECONCILE_GRACE_MS: integer(
    24 * hours,
    0,
    365 * 24 * hours,
    'milliseconds that a video without a render is left alone',
  ),
  RECONCILE_MAX_REBAKES: integer(
    100,
    0,
    1_000_000,
    'ready renders that one run of reconcile may have baked again; more look like another library or zone',
  ),
  RECONCILE_MAX_DELETIONS: integer(
    100,
    0,
    1_000_000,
    'videos without a render that one run of reconcile may delete; where there are more it deletes none',
  ),
  SWEEP_MS: integer(5 * seconds, 50, 1 * hours, 'milliseconds between two runs of each maintenance duty'),
};

export const pipelineSchema = z.object(pipelineEnv);
export type PipelineConfig = z.infer<typeof pipelineSchema>;
