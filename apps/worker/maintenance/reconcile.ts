import { reconcile } from '../../../lib/pipeline/reconcile.ts';
import { changesOf, isThorough } from '../../../lib/pipeline/reconcile-report.ts';
import type { Duty } from './duty.ts';

/** Holds rows, videos and stored files against each other. It takes minutes where there is much, so it comes rarely. */
export const reconciliation: Duty = {
  name: 'reconcile',
  everyMs: ({ RECONCILE_MS }) => RECONCILE_MS,
  run: async (deps, signal) => {
    const { config, metrics, log } = deps;
    const report = await reconcile(deps, {
      dryRun: false,
      graceMs: config.RECONCILE_GRACE_MS,
      signal,
      onAction: (action) => metrics.reconciled.inc({ action: action.do }),
    });
    log[isThorough(report) || signal.aborted ? 'info' : 'warn'](report, 'reconciled');
    return changesOf(report);
  },
};
