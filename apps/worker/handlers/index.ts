import type { JobKind } from '../../../lib/queue/jobs.ts';
import type { Handler } from '../../../lib/queue/run-jobs.ts';
import type { WorkerDeps } from '../deps.ts';
import { renderHandler } from './render.ts';
import { webhookHandler } from './webhook.ts';

/** One handler per kind of job; a kind without one does not compile. */
export const HANDLERS: { [K in JobKind]: (deps: WorkerDeps) => Handler<K> } = {
  render: renderHandler,
  webhook: webhookHandler,
};
