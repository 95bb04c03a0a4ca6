import { expireLeases } from '../../../lib/db/renders.ts';
import type { Duty } from './duty.ts';

const BATCH = 100;

/** Frees the renders of workers that died. */
export const leaseSweep: Duty = {
  name: 'lease-sweep',
  every: 1,
  run: async ({ database, log }) => {
    const { freed, failed } = await expireLeases(database.db, BATCH);
    for (const render of failed) log.error({ renderId: render.id }, 'render failed: its worker died too often');
    return freed.length + failed.length;
  },
};
