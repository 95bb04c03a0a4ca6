import { reconcileLibrary, reconcileStorage } from './reconcile-library.ts';
import { reconcileRenders } from './reconcile-renders.ts';
import { emptyReport, type ReconcileReport } from './reconcile-report.ts';
import type { ReconcileDeps, ReconcileOptions, Run } from './reconcile-run.ts';

/** The advisory lock under which one process reconciles at a time: what the worker's duty of this name takes. */
export const RECONCILE_LOCK = 'duty:reconcile';

/**
 * Holds rows, videos and stored files against each other and mends what does not fit: rows by what Bunny and storage
 * say, manifests by what the rows say; deletes videos of ours that nobody knows. Every change is guarded, so publishes
 * and bakes may go on meanwhile. What cannot be asked is counted, and no reason to stop, as long as anything answers.
 * Throws only where Postgres does.
 */
export async function reconcile(deps: ReconcileDeps, options: ReconcileOptions): Promise<ReconcileReport> {
  const report = emptyReport(options.dryRun);
  const signal = options.signal ?? new AbortController().signal;
  const run: Run = {
    ...{ deps, report, options: { ...options, signal } },
    done: (action) => {
      if (action.do === 'delete') report.deleted += 1;
      else report.repaired[action.do] += 1;
      deps.log[options.dryRun ? 'debug' : 'info'](action, 'reconciled');
      options.onAction?.(action);
    },
  };
  // Rows first: a video that its row gives up is nobody's from then on.
  await reconcileRenders(run);
  await reconcileLibrary(run);
  await reconcileStorage(run);
  if (signal.aborted) report.complete = false;
  return report;
}
