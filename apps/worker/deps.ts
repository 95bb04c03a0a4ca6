import type { WorkerConfig } from '../../lib/config/worker.ts';
import type { Database } from '../../lib/db/client.ts';
import type { Logger } from '../../lib/log.ts';
import type { Fleet } from '../../lib/media/fleet.ts';
import type { TranscodeDeps } from '../../lib/pipeline/transcode.ts';
import type { Mirror } from '../../lib/queue/mirror.ts';
import type { WorkerMetrics } from './metrics.ts';
import type { Permits } from './permits.ts';

/** What the handlers and the maintenance duties work with. */
export interface WorkerDeps extends TranscodeDeps {
  config: WorkerConfig;
  database: Database;
  media: Fleet;
  mirror: Mirror;
  permits: Permits;
  metrics: WorkerMetrics;
  log: Logger;
}
