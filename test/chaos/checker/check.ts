import { noOrphan, oneBakePerKey, readyPlays } from './bakes.ts';
import type { Check, Evidence, Violation } from './evidence.ts';
import { fair } from './fairness.ts';
import { attemptsCounted, lawfulHistory } from './history.ts';
import { inbox } from './inbox.ts';
import { allReady, failedExplained, nothingLost } from './lost.ts';
import { readyStaysReady } from './readiness.ts';

const CHECKS: readonly Check[] = [
  nothingLost,
  allReady,
  failedExplained,
  lawfulHistory,
  attemptsCounted,
  oneBakePerKey,
  noOrphan,
  readyPlays,
  inbox,
  fair,
  readyStaysReady,
];

/** Holds what a run left behind against everything that must always hold. */
export const violationsOf = (evidence: Evidence): Violation[] => CHECKS.flatMap((check) => check(evidence));
