import { sql } from 'drizzle-orm';
import { afterEach, expect, it } from 'vitest';
import { rows } from '../../../lib/db/rows.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { insertRenders } from '../../support/renders.ts';
import { doneLine, startScriptedMedia } from '../../support/scripted-media.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker } from '../../support/worker.ts';

const database = useTestDatabase();
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

it('a queue that holds two renders at once is filled again when it has run dry, not when the next sweep is due', async () => {
  const media = await startScriptedMedia();
  opened.push(media.close);
  const { url: redisUrl, prefix } = testRedis();
  const queues = openQueues({ redisUrl, prefix }, silentLog);
  opened.push(queues.close);
  await insertRenders(
    database.db,
    Array.from({ length: 20 }, (_, n) => ({ fairTag: n + 1 })),
  );
  let deepest = 0;
  media.script = async (call) => {
    deepest = Math.max(deepest, await queues.renders.count());
    call.line(doneLine(call.request));
    call.end();
  };
  const given = { databaseUrl: database.url, redisUrl, prefix, mediaUrl: media.url, mediaToken: media.token };
  const worker = startTestWorker(given, { RENDER_QUEUE_MAX_MIRRORED: '2', SWEEP_MS: '600000' });
  opened.push(worker.stop);
  await waitFor(
    async () => {
      const [found] = await rows<{ left: number }>(
        database.db,
        sql`select count(*)::int as left from exercise_renders where status <> 'transcoding'`,
      );
      return found?.left === 0;
    },
    { label: 'all twenty to be baked', timeoutMs: 20_000 },
  );
  expect(deepest).toBeLessThanOrEqual(2);
});
