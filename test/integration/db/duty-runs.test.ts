import { expect, it } from 'vitest';
import { startDutyRun } from '../../../lib/db/duty-runs.ts';
import { dutyRuns } from '../../../lib/db/schema/index.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();
const HOUR_MS = 3_600_000;

it('starts a rare duty once a period, however many ask, and not at the first question', async () => {
  const ask = () => startDutyRun(database.db, 'reconcile', HOUR_MS);
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([false, false, false]);
  expect(await ask()).toBe(false);
  await database.db.update(dutyRuns).set({ ranAt: new Date(Date.now() - 2 * HOUR_MS) });
  const started = await Promise.all([ask(), ask(), ask()]);
  expect(started.filter(Boolean)).toHaveLength(1);
  expect(await ask()).toBe(false);
});
