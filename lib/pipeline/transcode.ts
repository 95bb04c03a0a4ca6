import type { PipelineConfig } from '../config/pipeline.ts';
import type { Database } from '../db/client.ts';
import type { Render } from '../db/move.ts';
import { markReady, markTranscodeFailed, markTranscodeLost, postponeTranscode } from '../db/renders.ts';
import { judgeTranscode, type TranscodeVerdict } from '../domain/transcode.ts';
import { ERRORS } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { VideoStatus } from '../media/contract.ts';

export type TranscodeCause = 'webhook' | 'backstop' | 'reconcile';

export interface TranscodeDeps {
  config: Pick<PipelineConfig, 'READY_ON' | 'TRANSCODE_POLL_MS' | 'TRANSCODE_GIVE_UP_MS' | 'RENDER_BACKOFF_MS'>;
  database: Pick<Database, 'db'>;
  media: { videoStatus(guid: string): Promise<VideoStatus> };
  log: Logger;
  /** Told of every judgement, for whoever counts them. */
  onVerdict?: (verdict: TranscodeVerdict['kind'], cause: TranscodeCause) => void;
  /** Told of renders that look different to whoever waits for them, after the commit. */
  onChanged?: (renderIds: readonly string[]) => void;
}

/**
 * Asks Bunny, through media, how a transcoding render stands and moves its row accordingly. Webhook, backstop and
 * reconcile share this, so that any order and number of them ends in the same state. Throws where Bunny could not be
 * asked.
 */
export async function settleTranscode(
  deps: TranscodeDeps,
  render: Render,
  cause: TranscodeCause,
): Promise<TranscodeVerdict['kind']> {
  const { config, database, log, media } = deps;
  if (render.videoGuid === null || render.durationMs === null)
    throw new Error(`render ${render.id} transcodes without a video`);
  const video = { id: render.id, videoGuid: render.videoGuid, cause };
  const status = await media.videoStatus(render.videoGuid);
  const verdict = judgeTranscode(status, { durationMs: render.durationMs }, config.READY_ON);
  deps.onVerdict?.(verdict.kind, cause);
  switch (verdict.kind) {
    case 'ready':
      if (await markReady(database.db, video)) {
        log.info({ renderId: render.id, cause }, 'render ready');
        deps.onChanged?.([render.id]);
      }
      break;
    case 'failed':
      await markTranscodeFailed(database.db, {
        ...video,
        error: { code: verdict.code, message: ERRORS[verdict.code].sentence, detail: verdict.detail },
      });
      log.error({ renderId: render.id, cause, detail: verdict.detail }, 'transcode failed');
      deps.onChanged?.([render.id]);
      break;
    case 'lost':
      // A webhook tells of a video that was there a moment ago; that it is really gone is for the backstop to find.
      if (cause === 'webhook') return 'wait';
      await settleLost(deps, render, video, {
        code: 'transcode_missing',
        forgetVideo: verdict.gone,
        detail: verdict.detail,
      });
      break;
    case 'wait':
      if (transcodeAgeMs(render) > config.TRANSCODE_GIVE_UP_MS) {
        const detail = `still ${status.state} after ${Math.round(transcodeAgeMs(render) / 1000)} s`;
        await settleLost(deps, render, video, { code: 'transcode_stuck', forgetVideo: true, detail });
        return 'lost';
      }
      await postponeTranscode(database.db, { ...video, nextMs: config.TRANSCODE_POLL_MS });
      break;
  }
  return verdict.kind;
}

/** Milliseconds since the upload. */
export const transcodeAgeMs = (render: Render) =>
  Date.now() - (render.transcodeStartedAt ?? render.updatedAt).getTime();

/** Nothing will come of this video: the render is baked or uploaded again, as often as its attempts allow. */
async function settleLost(
  { config, database, log, onChanged }: TranscodeDeps,
  render: Render,
  video: { id: string; videoGuid: string; cause: TranscodeCause },
  lost: { code: 'transcode_missing' | 'transcode_stuck'; forgetVideo: boolean; detail: string },
): Promise<void> {
  const { code, detail, forgetVideo } = lost;
  const error = { code, message: ERRORS[code].sentence, detail };
  log.warn({ renderId: render.id, attempts: render.attempts, code, detail }, 'video lost');
  if (render.attempts >= render.maxAttempts) {
    await markTranscodeFailed(database.db, { ...video, error });
    onChanged?.([render.id]);
  } else await markTranscodeLost(database.db, { ...video, error, forgetVideo, delayMs: config.RENDER_BACKOFF_MS });
}
