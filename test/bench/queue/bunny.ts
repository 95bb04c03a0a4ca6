import { setTimeout as delay } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import PQueue from 'p-queue';
import type { Db } from '../../../lib/db/client.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { storeWebhookEvent } from '../../../lib/db/webhooks.ts';

const POLL_MS = 20;
/** Bunny's webhook status for a video whose transcode has finished. */
const FINISHED = 3;

/**
 * Plays Bunny and the edge's webhook route: looks for uploaded renders, and for each stores the delivery and
 * announces it, exactly as the route does. Resolves when `expected` have been told of and none is
 * transcoding; `expected` is asked again and again, since it grows while programmes are published.
 */
export async function tellFinished(
  db: Db,
  announce: (eventId: string) => Promise<void>,
  { expected, deadlineMs }: { expected: () => number; deadlineMs: number },
): Promise<void> {
  const told = new Set<string>();
  const edge = new PQueue({ concurrency: 10 });
  let failure: unknown;
  const deadline = performance.now() + deadlineMs;
  const { id, videoGuid, status } = exerciseRenders;
  for (;;) {
    const transcoding = await db.select({ id, videoGuid }).from(exerciseRenders).where(eq(status, 'transcoding'));
    const fresh = transcoding.filter((render) => !told.has(render.id));
    for (const render of fresh) {
      told.add(render.id);
      const event = { videoGuid: render.videoGuid ?? '', libraryId: 1, status: FINISHED, body: '{}' };
      const deliver = async () => {
        const stored = await storeWebhookEvent(db, { ...event, verifiedBy: 'signature' });
        await announce(stored.id);
      };
      edge.add(deliver).catch((error: unknown) => {
        failure ??= error;
      });
    }
    if (told.size >= expected() && transcoding.length === 0) return;
    if (failure !== undefined) throw failure;
    if (transcoding.length === 0) await expectNoFailure(db);
    if (performance.now() > deadline)
      throw new Error(`only ${told.size} of ${expected()} renders were uploaded in time`);
    await delay(POLL_MS);
  }
}

async function expectNoFailure(db: Db): Promise<void> {
  const [failed] = await db.select().from(exerciseRenders).where(eq(exerciseRenders.status, 'failed')).limit(1);
  if (failed) throw new Error(`a render failed: ${failed.errorCode}: ${failed.errorMessage}`);
}
