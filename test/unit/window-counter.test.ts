import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createWindowCounter } from '../../lib/window-counter.ts';

describe('a counter of windows', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('allows so many in each key’s own window, which begins with its first', () => {
    const counter = createWindowCounter({ limit: 2, windowMs: 1_000 });
    expect(counter.take('a')).toEqual({ allowed: true, left: 1, endsInMs: 1_000 });
    vi.advanceTimersByTime(400);
    expect(counter.take('b')).toMatchObject({ allowed: true, endsInMs: 1_000 });
    expect(counter.take('a')).toEqual({ allowed: true, left: 0, endsInMs: 600 });
    expect(counter.take('a')).toEqual({ allowed: false, left: 0, endsInMs: 600 });
    vi.advanceTimersByTime(600);
    expect(counter.take('a')).toEqual({ allowed: true, left: 1, endsInMs: 1_000 });
    expect(counter.take('b')).toMatchObject({ allowed: true, left: 0 });
  });

  it('counts nothing where it is only looked at', () => {
    const counter = createWindowCounter({ limit: 1, windowMs: 1_000 });
    expect([counter.look('a'), counter.look('a')].map(({ allowed }) => allowed)).toEqual([true, true]);
    counter.take('a');
    expect(counter.look('a')).toEqual({ allowed: false, left: 0, endsInMs: 1_000 });
  });

  it('forgets the one whose window ends first where there are too many', () => {
    const counter = createWindowCounter({ limit: 1, windowMs: 1_000, max: 2 });
    for (const key of ['a', 'b', 'c']) counter.take(key);
    expect(['b', 'c', 'a'].map((key) => counter.look(key).allowed)).toEqual([false, false, true]);
  });

  it('never allows more than its limit in a window, whoever asks when', () => {
    const asks = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat({ max: 300 })), { maxLength: 200 });
    fc.assert(
      fc.property(asks, fc.integer({ min: 1, max: 5 }), (sequence, limit) => {
        const counter = createWindowCounter({ limit, windowMs: 1_000 });
        const model = new Map<string, { start: number; count: number }>();
        for (const [key, pause] of sequence) {
          vi.advanceTimersByTime(pause);
          const now = performance.now();
          const known = model.get(key);
          const window = known && now < known.start + 1_000 ? known : { start: now, count: 0 };
          model.set(key, window);
          const allowed = window.count < limit;
          if (allowed) window.count += 1;
          expect(counter.take(key)).toEqual({
            ...{ allowed, left: limit - window.count, endsInMs: window.start + 1_000 - now },
          });
        }
      }),
    );
  });
});
