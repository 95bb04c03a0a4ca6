/** What a clinic's own systems may be told of: the types that a webhook endpoint chooses from. */
export const OUTBOUND_EVENTS = ['exercise.render_ready', 'exercise.render_failed', 'program.ready'] as const;
export type OutboundEvent = (typeof OUTBOUND_EVENTS)[number];

/** Sent on request only, whatever the endpoint has chosen. */
export const TEST_EVENT = 'webhook.test';

/** What a delivery carries: one of those, or the test. */
export const DELIVERY_TYPES = [...OUTBOUND_EVENTS, TEST_EVENT] as const;
export type DeliveryType = (typeof DELIVERY_TYPES)[number];

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * The body of a delivery, in the form of the Standard Webhooks specification: `timestamp` is when it happened, the same at
 * every attempt. The very text that is signed.
 */
export const bodyOf = (event: { type: DeliveryType; createdAt: Date; data: Record<string, unknown> }): string =>
  JSON.stringify({ type: event.type, timestamp: event.createdAt.toISOString(), data: event.data });

/**
 * Milliseconds until the next attempt after `failed` of them, or null where that was the last. A tenth more or less, so
 * that what failed together does not come again together; never sooner than the receiver asked for. `random` is in [0, 1).
 */
export function nextAttemptMs(
  schedule: readonly number[],
  failed: number,
  { askedMs = 0, random }: { askedMs?: number | undefined; random: number },
): number | null {
  const wait = schedule[failed - 1];
  if (wait === undefined) return null;
  return Math.round(Math.max(wait * (0.9 + 0.2 * random), Math.min(askedMs, LONGEST_ASKED_MS)));
}

/** A receiver may ask for patience, not for oblivion. */
const LONGEST_ASKED_MS = 24 * 60 * 60_000;
