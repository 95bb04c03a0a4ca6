import { leaseSweep } from './lease-sweep.ts';
import { mirrorSweep } from './mirror-sweep.ts';
import { pruning } from './pruning.ts';
import { readyNotices } from './ready-notices.ts';
import { reconciliation } from './reconcile.ts';
import { transcodeBackstop } from './transcode-backstop.ts';
import { webhookReplay } from './webhook-replay.ts';

/** Every piece of housekeeping. */
export const DUTIES = [
  leaseSweep,
  mirrorSweep,
  transcodeBackstop,
  webhookReplay,
  readyNotices,
  pruning,
  reconciliation,
];
