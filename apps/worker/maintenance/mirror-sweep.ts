import type { Duty } from './duty.ts';

/** Brings the queue in line with the rows: what was never mirrored, was lost with Redis, or has changed its place. */
export const mirrorSweep: Duty = {
  name: 'mirror-sweep',
  every: 1,
  run: ({ config, mirror }) => mirror.sweep({ staleMs: config.RENDER_REDISPATCH_MS }),
};
