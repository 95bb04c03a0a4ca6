import { undispatched } from '../../../lib/db/dispatch.ts';
import type { Duty } from './duty.ts';

const BATCH = 500;

/** Adds to the queue what it does not hold: never mirrored, or lost with Redis. */
export const mirrorSweep: Duty = {
  name: 'mirror-sweep',
  every: 1,
  run: async ({ config, database, mirror }) => {
    const renders = await undispatched(database.db, { staleMs: config.RENDER_REDISPATCH_MS, limit: BATCH });
    return (await mirror.redispatch(renders)) ? renders.length : 0;
  },
};
