import type { Registry } from 'prom-client';
import type { Verifier } from '../../lib/auth/tokens.ts';
import type { EdgeConfig } from '../../lib/config/edge.ts';
import type { Database } from '../../lib/db/client.ts';
import type { Logger } from '../../lib/log.ts';
import type { Fleet } from '../../lib/media/fleet.ts';
import type { Mirror } from '../../lib/queue/mirror.ts';
import type { Queues } from '../../lib/queue/queues.ts';
import type { Statuses } from './statuses.ts';

/** What the edge works with; made in main.ts. */
export interface EdgeDeps {
  config: EdgeConfig;
  database: Database;
  queues: Queues;
  mirror: Pick<Mirror, 'dispatch'>;
  media: Pick<Fleet, 'uploadAsset'>;
  verify: Verifier;
  registry: Registry;
  log: Logger;
  statuses: Statuses;
  /** Aborted from the moment the process has been told to stop. */
  stopping: AbortSignal;
}
