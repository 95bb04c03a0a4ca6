import { eq } from 'drizzle-orm';
import { expect, it } from 'vitest';
import type { WorkerDeps } from '../../../apps/worker/deps.ts';
import { leaseSweep } from '../../../apps/worker/maintenance/lease-sweep.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { renderJobId } from '../../../lib/domain/render-states.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { silentLog } from '../../support/log.ts';
import { usePipeline } from './fixture.ts';

const pipeline = usePipeline();

it('a render whose worker died has a job again when the sweep that frees it is over', async () => {
  const { db } = pipeline.database;
  const connection = pipeline.connection();
  const queues = openQueues(connection, silentLog);
  pipeline.own(queues, queues.close);
  const [id] = await pipeline.publish(connection, 1);
  await queues.renders.remove(renderJobId((await pipeline.render(id!)).recipeHash, 0));
  await db
    .update(exerciseRenders)
    .set({
      status: 'rendering',
      attempts: 1,
      leaseToken: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc',
      leaseExpiresAt: new Date(Date.now() - 1),
    })
    .where(eq(exerciseRenders.id, id!));

  const mirror = createMirror({ queue: queues.renders, rows: mirrorRows(db, 10), log: silentLog });
  const deps = { config: { RENDER_REDISPATCH_MS: 60_000 }, database: pipeline.database, log: silentLog, mirror };
  expect(await leaseSweep.run(deps as unknown as WorkerDeps, new AbortController().signal)).toBe(1);

  expect(await pipeline.render(id!)).toMatchObject({ status: 'pending', attempts: 1 });
  expect(await queues.renders.getJobCounts('prioritized')).toEqual({ prioritized: 1 });
});
