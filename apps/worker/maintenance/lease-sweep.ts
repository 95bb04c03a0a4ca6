import { expireLeases } from '../../../lib/db/renders.ts';
import type { Duty } from './duty.ts';

const BATCH = 100;

/** Frees the renders of workers that died, and has the queue told at once: its own sweep would cost them another interval. */
export const leaseSweep: Duty = {
  name: 'lease-sweep',
  every: 1,
  run: async ({ config, database, log, mirror, onChanged }) => {
    const { freed, failed } = await expireLeases(database.db, BATCH);
    for (const render of failed) log.error({ renderId: render.id }, 'render failed: its worker died too often');
    if (failed.length > 0) onChanged?.(failed.map(({ id }) => id));
    if (freed.length > 0) {
      // Not a mere `dispatch`: the job of the dead worker may be in the way.
      await mirror
        .sweep({ staleMs: config.RENDER_REDISPATCH_MS })
        .catch((err: unknown) => log.warn({ err }, 'freed renders not mirrored; the mirror sweep will'));
    }
    return freed.length + failed.length;
  },
};
