import { tellReady } from '../../../lib/db/notifications.ts';
import type { Duty } from './duty.ts';

/** Tells patients of ready programmes whom nobody came to tell: the process that made it so died right after. */
export const readyNotices: Duty = {
  name: 'ready-notices',
  every: 6,
  run: ({ database }) => tellReady(database.db),
};
