import { webhookStatus } from '../../../lib/bunny/video-state.ts';
import { findRenderByVideo, findWhoGaveUp } from '../../../lib/db/renders.ts';
import {
  findUnappliedWebhook,
  markWebhookApplied,
  postponeWebhook,
  type WebhookEvent,
} from '../../../lib/db/webhooks.ts';
import { toAppError } from '../../../lib/errors.ts';
import { settleTranscode, type TranscodeDeps } from '../../../lib/pipeline/transcode.ts';
import { done } from '../../../lib/queue/jobs.ts';
import type { Handler } from '../../../lib/queue/run-jobs.ts';
import type { WorkerDeps } from '../deps.ts';

/** Bunny's API may lag its own webhook by about half a second (measured). */
const LAG_MS = 1_500;
const LONGEST_WAIT_MS = 10 * 60_000;
/** A library may be shared: an event whose video nobody has known for a day is nobody's here. */
const GIVE_UP_MS = 24 * 60 * 60_000;

/** Doubles from the lag: an event for a video that nobody knows yet is soon looked at again, then ever more rarely. */
const waitMs = (tries: number) => Math.min(LONGEST_WAIT_MS, LAG_MS * 2 ** Math.min(tries, 20));

export function webhookHandler(deps: WorkerDeps): Handler<'webhook'> {
  return async ({ eventId }) => {
    const event = await findUnappliedWebhook(deps.database.db, eventId);
    return done(event ? await applyWebhook(deps, event) : 'applied already');
  };
}

/**
 * Applies a stored event, or leaves it for the replay sweep: where its video is not known (yet), the render has not
 * come to transcoding, or the truth could not be asked. Never throws for those; answers the outcome.
 */
export async function applyWebhook(
  deps: TranscodeDeps & Pick<WorkerDeps, 'metrics'>,
  event: WebhookEvent,
): Promise<string> {
  const { db } = deps.database;
  const applied = async (outcome: string) => {
    await markWebhookApplied(db, event.id, outcome);
    deps.metrics.webhooks.inc({ outcome });
    return outcome;
  };
  const postponed = async (outcome: string) => {
    if (Date.now() - event.receivedAt.getTime() > GIVE_UP_MS) return applied(`given-up: ${outcome}`);
    await postponeWebhook(db, event.id, { outcome, delayMs: waitMs(event.tries) });
    deps.metrics.webhooks.inc({ outcome });
    return outcome;
  };

  const meaning = webhookStatus(event.status);
  if (meaning === 'progress' || meaning === 'ignored') return applied(meaning);
  const render = await findRenderByVideo(db, event.videoGuid);
  if (!render) {
    const renderId = await findWhoGaveUp(db, event.videoGuid);
    if (renderId === null) return postponed('unknown-video');
    deps.log.info({ eventId: event.id, videoGuid: event.videoGuid, renderId }, 'webhook of a video that nobody needs');
    return applied('not-needed');
  }
  if (render.status === 'ready' || render.status === 'failed') return applied('settled-already');
  if (render.status !== 'transcoding') return postponed('too-early');
  try {
    const verdict = await settleTranscode(deps, render, 'webhook');
    // A first resolution is no end: only "finished" and "failed" are worth asking again for.
    return verdict === 'wait' && meaning !== 'resolution-finished' ? postponed('api-lags') : applied(verdict);
  } catch (thrown) {
    const error = toAppError(thrown);
    deps.log.warn({ err: error, eventId: event.id }, 'webhook not applied, to be tried again');
    return postponed(error.code);
  }
}
