import type { WorkerConfig } from '../../lib/config/worker.ts';
import type { Database } from '../../lib/db/client.ts';
import type { Logger } from '../../lib/log.ts';
import type { ComposeDone, ComposeLine, ComposeRequest, VideoStatus } from '../../lib/media/contract.ts';
import type { TranscodeDeps } from '../../lib/pipeline/transcode.ts';
import type { Mirror } from '../../lib/queue/mirror.ts';
import type { WorkerMetrics } from './metrics.ts';

/** What the worker asks of the media service. */
export interface WorkerMedia {
  composeRender(
    request: ComposeRequest,
    options: { signal: AbortSignal; silenceMs: number; onLine: (line: ComposeLine) => void },
  ): Promise<ComposeDone>;
  videoStatus(guid: string): Promise<VideoStatus>;
}

/** What the handlers and the maintenance duties work with. */
export interface WorkerDeps extends TranscodeDeps {
  config: WorkerConfig;
  database: Database;
  media: WorkerMedia;
  mirror: Mirror;
  metrics: WorkerMetrics;
  log: Logger;
}
