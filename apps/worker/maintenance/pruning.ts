import { pruneHistory } from '../../../lib/db/prune.ts';
import type { Duty } from './duty.ts';

const BATCH = 5_000;

/** Keeps the history and the inbox from growing for ever. Finished jobs are pruned by the queue itself. */
export const pruning: Duty = {
  name: 'pruning',
  every: 100,
  run: ({ config, database }) => pruneHistory(database.db, { days: config.HISTORY_DAYS, limit: BATCH }),
};
