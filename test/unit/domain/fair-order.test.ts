import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BASE_STEP, LOWEST_PRIORITY, queuePriority } from '../../../lib/domain/fair-order.ts';

const clock = fc.integer({ min: 0, max: 10 ** 12 });
const ahead = fc.integer({ min: 0, max: BASE_STEP });

describe('the priority of a render in the queue', () => {
  it('is one that BullMQ takes, and never the 0 that beats all others', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.boolean(), clock, (fairTag, urgent, now) => {
        const priority = queuePriority({ fairTag, urgent }, now);
        expect(priority).toBeGreaterThanOrEqual(1);
        expect(priority).toBeLessThanOrEqual(LOWEST_PRIORITY);
      }),
    );
  });

  it('goes by the round, and inside a round puts the urgent first, half a million rounds ahead of any clock', () => {
    fc.assert(
      fc.property(clock, ahead, ahead, fc.boolean(), fc.boolean(), (now, one, other, urgent, otherUrgent) => {
        const [a, b] = [
          queuePriority({ fairTag: now + one, urgent }, now),
          queuePriority({ fairTag: now + other, urgent: otherUrgent }, now),
        ];
        if (one !== other) expect(a < b).toBe(one < other);
        else expect(a < b).toBe(urgent && !otherUrgent);
      }),
    );
  });

  it('lets nobody overtake a render that was kept waiting while the clock ran on', () => {
    fc.assert(
      fc.property(clock, ahead, fc.boolean(), fc.nat(BASE_STEP), (now, later, urgent, behind) => {
        const late = queuePriority({ fairTag: now - behind, urgent: false }, now);
        expect(queuePriority({ fairTag: now + later + 1, urgent }, now)).toBeGreaterThan(late);
      }),
    );
  });
});
