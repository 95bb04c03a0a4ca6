import { pruneDeliveries } from '../../../lib/db/deliveries.ts';
import { pruneHistory } from '../../../lib/db/prune.ts';
import type { Duty } from './duty.ts';

const BATCH = 5_000;

/** Keeps the history, the inbox and the outbox of webhooks from growing for ever. Finished jobs are pruned by the queue itself. */
export const pruning: Duty = {
  name: 'pruning',
  every: 100,
  run: async ({ config, database: { db } }) =>
    (await pruneHistory(db, { days: config.HISTORY_DAYS, limit: BATCH })) +
    (await pruneDeliveries(db, { days: config.DELIVERY_DAYS, limit: BATCH })),
};
