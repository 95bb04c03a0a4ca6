import { tellReady } from '../../../lib/db/notifications.ts';
import type { Duty } from './duty.ts';

/** Tells patients and clinics' systems of ready programmes that nobody came to tell of: the process that made it so died right after. */
export const readyNotices: Duty = {
  name: 'ready-notices',
  every: 6,
  run: ({ database }) => tellReady(database.db),
};
