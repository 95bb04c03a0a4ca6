import type { Logger } from '../../lib/log.ts';
import type { Admission } from '../../lib/media/admission.ts';
import type { ComposeDeps } from '../../lib/media/compose.ts';
import type { MediaMetrics } from './metrics.ts';

/** What the media service works with; made in media.ts. */
export interface MediaDeps {
  compose: ComposeDeps;
  /** Bakes under way. */
  bakes: Admission;
  /** Uploads and validations under way. */
  checks: Admission;
  /** Fires when what is under way may not go on: the service is stopping. */
  stopping: AbortSignal;
  token: string;
  maxUploadBytes: number;
  heartbeatMs: number;
  /** The pull zone that videos are played from. */
  videoCdnUrl: string;
  metrics: MediaMetrics;
  log: Logger;
}
