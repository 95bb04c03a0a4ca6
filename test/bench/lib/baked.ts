import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../../lib/db/client.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';

const BAKED = { masterSha256: 'b'.repeat(64), videoGuid: 'video-1', manifestUrl: 'https://zone.invalid/manifest.json' };

/** Takes these renders for ready, past all baking and without a history: a bench asks what comes afterwards. */
export async function setReady(db: Db, which: SQL): Promise<void> {
  await db
    .update(exerciseRenders)
    .set({ ...BAKED, status: 'ready', readyAt: sql`now()` })
    .where(which);
}

/** Takes them for uploaded: Bunny is at work, and nothing is due for an hour. */
export async function setTranscoding(db: Db, which: SQL): Promise<void> {
  await db
    .update(exerciseRenders)
    .set({ ...BAKED, status: 'transcoding', transcodeDeadlineAt: sql`now() + interval '1 hour'` })
    .where(which);
}
