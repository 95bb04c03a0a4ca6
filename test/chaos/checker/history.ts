import { type HistoryRule, historyViolations } from '../../../lib/domain/history.ts';
import { type Check, type EventRow, histories, type Invariant, type Violation } from './evidence.ts';

const INVARIANT_OF: Record<HistoryRule, Invariant> = {
  birth: 'legal-history',
  chain: 'legal-history',
  move: 'legal-history',
  generation: 'legal-history',
  attempts: 'attempts',
  fence: 'one-writer',
  row: 'rows-match-history',
};

/**
 * Every history obeys the table of moves, was written by the holder of the last claim, and ends where the row stands;
 * and no claim of any render uses the token of another's.
 */
export const lawfulHistory: Check = (evidence) => {
  const tokens = new Map<string, string>();
  return histories(evidence).flatMap(({ render, events }) => {
    const told = events.map((event) => ({ ...event, fromStatus: event.from, toStatus: event.to }));
    const unlawful = historyViolations(told, { whole: true, row: render }).map(
      ({ rule, sentence }): Violation => ({ invariant: INVARIANT_OF[rule], renderId: render.id, detail: sentence }),
    );
    const shared = events.flatMap(({ to, leaseToken }): Violation[] => {
      if (to !== 'rendering' || leaseToken === null) return [];
      const other = tokens.get(leaseToken);
      tokens.set(leaseToken, render.id);
      return other === undefined || other === render.id
        ? []
        : [{ invariant: 'one-writer', renderId: render.id, detail: `its claim has the token of render ${other}` }];
    });
    return [...unlawful, ...shared];
  });
};

/** The ends of an attempt that are its own fault, or a crash's: these stay counted. */
export const COUNTED: ReadonlySet<string> = new Set(['retry', 'lease-expired']);

/**
 * What is given back because of a shutdown, a full media service or a lost queue lock costs no attempt, a crash or a
 * failure costs exactly one, and no count ever exceeds what the row allows.
 */
export const attemptsCounted: Check = (evidence) =>
  histories(evidence).flatMap(({ render, events }) =>
    events.flatMap((event, index): Violation[] => {
      const wrong = (detail: string): Violation[] => [{ invariant: 'attempts', renderId: render.id, detail }];
      if (event.attempt > render.maxAttempts)
        return wrong(`event ${event.id} is attempt ${event.attempt} of ${render.maxAttempts}`);
      const claim: EventRow | undefined = events[index - 1];
      if (event.from !== 'rendering' || event.to !== 'pending' || !claim) return [];
      const expected = COUNTED.has(event.cause) ? claim.attempt : claim.attempt - 1;
      return event.attempt === expected
        ? []
        : wrong(`after “${event.cause}” attempt ${event.attempt} is counted, not ${expected}`);
    }),
  );
