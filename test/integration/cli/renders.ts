import { randomUUID } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import type { Db } from '../../../lib/db/client.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { claimRender, deadLetter, findRender, markReady, markUploaded, retryRender } from '../../../lib/db/renders.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';

export interface Published {
  id: string;
  programId: string;
  orgId: string;
  exerciseId: string;
}

async function published(db: Db, language: string): Promise<Published> {
  const orgId = await anOrganisation(db);
  const exercise = await anExercise(db, { orgId });
  const programId = await aProgram(db, orgId, [[{ exerciseId: exercise.id }]], { language });
  const { queued } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
  return { id: queued[0]!.id, programId, orgId, exerciseId: exercise.id };
}

/** Brings a new render to where it is wanted, by the moves that a worker makes. */
export async function aRender(
  db: Db,
  to: RenderStatus | 'waiting',
  code = 'ffmpeg_failed',
  language = 'en',
): Promise<Published> {
  const made = await published(db, language);
  if (to === 'pending') return made;
  const lease = { id: made.id, token: randomUUID() };
  await claimRender(db, { ...lease, generation: 0, by: 'worker-1', leaseMs: 60_000 });
  const error = { code, message: 'It could not be made.' };
  const videoGuid = `video-${made.id}`;
  if (to === 'waiting') await retryRender(db, lease, { error, delayMs: 3_600_000 });
  if (to === 'failed') {
    await db.update(exerciseRenders).set({ videoGuid }).where(eq(exerciseRenders.id, made.id));
    await deadLetter(db, lease, error);
  }
  if (to === 'transcoding' || to === 'ready')
    await markUploaded(
      db,
      lease,
      {
        masterSha256: 'b'.repeat(64),
        videoGuid,
        collectionId: null,
        manifestUrl: 'https://cdn/manifest.json',
        captionsUrl: null,
        posterUrl: 'https://cdn/poster.jpg',
        baselines: [],
        durationMs: 10_000,
        warnings: [],
      },
      60_000,
    );
  if (to === 'ready') await markReady(db, { id: made.id, videoGuid, cause: 'webhook' });
  expect((await findRender(db, made.id))?.status).toBe(to === 'waiting' ? 'pending' : to);
  return made;
}
