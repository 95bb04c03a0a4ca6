import { describe, expect, it } from 'vitest';
import { Faults } from '../../../apps/bunny-sim/faults.ts';

describe('Faults', () => {
  it('strike never, always, a number of times, or where the subject matches', () => {
    const times = (faults: Faults, subject: string) =>
      Array.from({ length: 5 }, () => faults.strikes('missingVideo', subject)).filter(Boolean).length;
    expect(times(new Faults(), 'a')).toBe(0);
    expect(times(new Faults({ missingVideo: false }), 'a')).toBe(0);
    expect(times(new Faults({ missingVideo: true }), 'a')).toBe(5);
    expect(times(new Faults({ missingVideo: 2 }), 'a')).toBe(2);
    const matching = new Faults({ missingVideo: { count: 2, match: 'b' } });
    expect(times(matching, 'a')).toBe(0);
    expect(times(matching, 'abc')).toBe(2);
  });

  it('take a number for a rate where it is one', () => {
    const faults = new Faults({ rate429: 1, rate5xx: 0 });
    expect(Array.from({ length: 20 }, () => faults.strikes('rate429', 'GET /'))).not.toContain(false);
    expect(Array.from({ length: 20 }, () => faults.strikes('rate5xx', 'GET /'))).not.toContain(true);
    faults.merge({ rate5xx: { rate: 1, count: 1 } });
    expect([faults.strikes('rate5xx', 'GET /'), faults.strikes('rate5xx', 'GET /')]).toEqual([true, false]);
  });

  it('merge name by name inside the groups, count anew, and end with a reset', () => {
    const faults = new Faults({ webhooks: { lost: 1, late: 5 }, eventualListing: true });
    expect(faults.strikes('webhooks.lost', '')).toBe(true);
    expect(faults.strikes('webhooks.lost', '')).toBe(false);
    faults.merge({ webhooks: { lost: 1 } });
    expect(faults.strikes('webhooks.lost', '')).toBe(true);
    expect([faults.webhookDelayMs, faults.listingDelayMs]).toEqual([5, 3000]);
    faults.reset();
    expect([faults.webhookDelayMs, faults.listingDelayMs, faults.settings()]).toEqual([0, 0, {}]);
  });

  it('refuse what they do not know', () => {
    for (const wrong of [
      { nope: true },
      { rate429: 1.5 },
      { webhooks: { lost: -1 } },
      { latencyMs: 'slow' },
      null,
      [],
    ]) {
      expect(() => new Faults(wrong)).toThrow();
    }
  });
});
