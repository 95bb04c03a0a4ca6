import fc from 'fast-check';
import { expect, it } from 'vitest';
import { loadWorkerConfig } from '../../../lib/config/worker.ts';
import { nextAttemptMs } from '../../../lib/domain/outbound.ts';

const DAY = 24 * 3_600_000;
const needed = {
  DATABASE_URL: 'postgres://localhost/bakehouse',
  REDIS_URL: 'redis://localhost',
  MEDIA_URL: 'http://localhost:8081',
  MEDIA_TOKEN: '0123456789abcdef',
};
const { DELIVERY_RETRY_MS: schedule } = loadWorkerConfig(needed);

it('by default a delivery is tried ten times, the last time after three days and a bit', () => {
  const waits = schedule.map((_, n) => nextAttemptMs(schedule, n + 1, { random: 0.5 }) ?? Number.NaN);
  expect(waits).toEqual([...schedule]);
  const total = waits.reduce((sum, wait) => sum + wait);
  expect(total).toBeGreaterThan(3 * DAY);
  expect(total).toBeLessThan(3.5 * DAY);
  expect(nextAttemptMs(schedule, schedule.length + 1, { random: 0.5 })).toBeNull();
});

it('a wait is within a tenth of the schedule, never shorter than what the receiver asked for, and a day at most for that', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: schedule.length }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.integer({ min: 0, max: 30 * DAY }),
      (failed, random, askedMs) => {
        const step = schedule[failed - 1] ?? 0;
        const plain = nextAttemptMs(schedule, failed, { random }) ?? Number.NaN;
        expect(plain).toBeGreaterThanOrEqual(Math.floor(step * 0.9));
        expect(plain).toBeLessThanOrEqual(Math.ceil(step * 1.1));
        const asked = nextAttemptMs(schedule, failed, { askedMs, random });
        expect(asked).toBe(Math.max(plain, Math.min(askedMs, DAY)));
      },
    ),
  );
});

it('the schedule is a list of milliseconds and nothing else', () => {
  expect(loadWorkerConfig({ ...needed, DELIVERY_RETRY_MS: '10, 20' }).DELIVERY_RETRY_MS).toEqual([10, 20]);
  for (const bad of ['soon', '10,-1', '1e3', '99999999999'])
    expect(() => loadWorkerConfig({ ...needed, DELIVERY_RETRY_MS: bad })).toThrow(/DELIVERY_RETRY_MS/);
});

it('production refuses webhooks to private addresses, and a key that is too short is no key', () => {
  const production = { ...needed, NODE_ENV: 'production', WEBHOOK_ALLOW_PRIVATE: 'true' };
  expect(() => loadWorkerConfig(production)).toThrow(/WEBHOOK_ALLOW_PRIVATE: is for development/);
  expect(loadWorkerConfig({ ...production, NODE_ENV: 'development' }).WEBHOOK_ALLOW_PRIVATE).toBe(true);
  for (const bad of ['short', `${'k'.repeat(40)}, short`])
    expect(() => loadWorkerConfig({ ...needed, WEBHOOK_SIGNING_KEY: bad })).toThrow(/WEBHOOK_SIGNING_KEY/);
});
