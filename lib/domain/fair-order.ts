/** BullMQ takes priorities 1 … 2 097 151, lower first; 0 would beat them all: https://docs.bullmq.io/guide/jobs/prioritized */
export const HIGHEST_PRIORITY = 1;
export const LOWEST_PRIORITY = 2_097_151;

/**
 * How far the clock runs between two bases. From any base on, a million rounds are told apart; so at least half a
 * million lie ahead of the clock before the lowest priority is reached, which a bounded mirror never is.
 */
export const BASE_STEP = 500_000;

/**
 * The queue's priority of a render: its round counted from a base that follows the clock, and inside a round the urgent
 * first. A round before the base, which only a render kept waiting can have, is among the first of all.
 *
 * `priorityOf` of lib/db/fairness.ts is the same for whole sets of rows, and is held against this one by property.
 */
export function queuePriority({ fairTag, urgent }: { fairTag: number; urgent: boolean }, virtualNow: number): number {
  const base = Math.floor(virtualNow / BASE_STEP) * BASE_STEP;
  const place = 1 + 2 * (fairTag - base) + (urgent ? 0 : 1);
  return Math.min(LOWEST_PRIORITY, Math.max(HIGHEST_PRIORITY, place));
}
