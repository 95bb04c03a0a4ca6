import { and, eq, inArray, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { type Lease, move, type Render } from './move.ts';
import { inMs, rows } from './rows.ts';
import { type EventError, exerciseRenders, exercises, renderEvents } from './schema/index.ts';

const one = async (result: Promise<Render[]>): Promise<Render | null> => (await result)[0] ?? null;

/**
 * Takes a pending render of this generation whose time has come, for `leaseMs`, under a fresh token. Null: taken,
 * done, requeued under a newer generation, or not due yet.
 */
export function claimRender(
  db: Executor,
  claim: { id: string; generation: number; token: string; by: string; leaseMs: number },
): Promise<Render | null> {
  return one(
    move(db, 'claim', {
      where: sql`r.id = ${claim.id} and r.generation = ${claim.generation} and (r.not_before is null or r.not_before <= now())`,
      set: sql`lease_token = ${claim.token}, lease_expires_at = ${inMs(claim.leaseMs)}, claimed_at = now(), claimed_by = ${claim.by}, not_before = null,
        served_key = r.fair_key, served_round = r.fair_tag`,
      cause: 'claim',
      token: claim.token,
    }),
  );
}

const isHeld = (lease: Lease) =>
  and(
    eq(exerciseRenders.id, lease.id),
    eq(exerciseRenders.leaseToken, lease.token),
    eq(exerciseRenders.status, 'rendering'),
  );

/** Extends the lease and notes the progress. False: the lease is lost, and nothing of this claim may be written any more. */
export async function heartbeat(
  db: Executor,
  lease: Lease,
  leaseMs: number,
  progress?: { stage: string; percent: number },
): Promise<boolean> {
  const updated = await db
    .update(exerciseRenders)
    .set({
      leaseExpiresAt: inMs(leaseMs),
      ...(progress && { progressStage: progress.stage, progressPercent: Math.round(progress.percent) }),
    })
    .where(isHeld(lease))
    .returning({ id: exerciseRenders.id });
  return updated.length === 1;
}

/** Notes the video at Bunny before its bytes go up, so that an early webhook and a later retry find it. */
export async function recordVideo(
  db: Executor,
  lease: Lease,
  video: { guid: string; masterSha256: string; collectionId: string | null },
): Promise<boolean> {
  const updated = await db
    .update(exerciseRenders)
    .set({ videoGuid: video.guid, masterSha256: video.masterSha256, videoCollectionId: video.collectionId })
    .where(isHeld(lease))
    .returning({ id: exerciseRenders.id });
  return updated.length === 1;
}

/**
 * Gives a claimed render back without costing the attempt. Its job goes back too, where Redis still knows it; where it
 * does not, the sweep adds another one when the time has come.
 */
export const handBack = (db: Executor, lease: Lease, options: { cause: string; delayMs?: number }) =>
  one(
    move(db, 'hand-back', {
      where: lease,
      set: sql`dispatched_at = null, not_before = ${options.delayMs === undefined ? sql`null` : inMs(options.delayMs)}`,
      cause: options.cause,
    }),
  );

/** Sends a failed attempt back to wait for `delayMs`; the attempt stays counted. */
export const retryRender = (db: Executor, lease: Lease, options: { error: EventError; delayMs: number }) =>
  one(
    move(db, 'retry', {
      where: lease,
      set: sql`dispatched_at = null, not_before = ${inMs(options.delayMs)}`,
      cause: 'retry',
      error: options.error,
    }),
  );

/** Ends a claimed render for good, until somebody asks for it again. */
export const deadLetter = (db: Executor, lease: Lease, error: EventError) =>
  one(move(db, 'dead-letter', { where: lease, cause: 'dead-letter', error }));

export interface Artefacts {
  masterSha256: string;
  videoGuid: string;
  collectionId: string | null;
  manifestUrl: string;
  captionsUrl: string | null;
  posterUrl: string;
  baselines: Render['baselines'];
  durationMs: number;
  warnings: Render['warnings'];
}

/** The bake is done and stored; Bunny has `deadlineMs` to transcode before the backstop asks. */
export const markUploaded = (db: Executor, lease: Lease, made: Artefacts, deadlineMs: number) =>
  one(
    move(db, 'uploaded', {
      where: lease,
      set: sql`master_sha256 = ${made.masterSha256}, video_guid = ${made.videoGuid}, video_collection_id = ${made.collectionId},
        manifest_url = ${made.manifestUrl}, captions_url = ${made.captionsUrl}, poster_url = ${made.posterUrl},
        baselines = ${JSON.stringify(made.baselines)}::jsonb, duration_ms = ${made.durationMs},
        warnings = ${JSON.stringify(made.warnings)}::jsonb, transcode_checked_at = null,
        transcode_started_at = now(), transcode_deadline_at = ${inMs(deadlineMs)},
        progress_stage = 'transcode', progress_percent = 100`,
      cause: 'uploaded',
    }),
  );

/** Only the transcode of this very video is settled: a render baked again meanwhile is another matter. */
const transcoding = (id: string, videoGuid: string) => sql`r.id = ${id} and r.video_guid = ${videoGuid}`;

/** Bunny has finished and what it made is whole. */
export const markReady = (db: Executor, video: { id: string; videoGuid: string; cause: string }) =>
  one(
    move(db, 'finished', {
      where: transcoding(video.id, video.videoGuid),
      set: sql`ready_at = now(), error_code = null, error_message = null, progress_stage = null, transcode_checked_at = now()`,
      cause: video.cause,
    }),
  );

export const markTranscodeFailed = (
  db: Executor,
  video: { id: string; videoGuid: string; cause: string; error: EventError },
) =>
  one(
    move(db, 'transcode-failed', {
      where: transcoding(video.id, video.videoGuid),
      cause: video.cause,
      error: video.error,
    }),
  );

/** The video is gone or never arrived: bake it again. The recorded guid goes where there is nothing behind it. */
export const markTranscodeLost = (
  db: Executor,
  video: { id: string; videoGuid: string; cause: string; error: EventError; forgetVideo: boolean; delayMs: number },
) =>
  one(
    move(db, 'transcode-lost', {
      where: transcoding(video.id, video.videoGuid),
      set: sql`dispatched_at = null, not_before = ${inMs(video.delayMs)}${video.forgetVideo ? sql`, video_guid = null` : sql``}`,
      cause: video.cause,
      error: video.error,
    }),
  );

/** Notes that Bunny was asked and is still at work; the backstop looks again after `nextMs`. */
export async function postponeTranscode(
  db: Executor,
  video: { id: string; videoGuid: string; nextMs: number },
): Promise<void> {
  await db
    .update(exerciseRenders)
    .set({ transcodeCheckedAt: sql`now()`, transcodeDeadlineAt: inMs(video.nextMs) })
    .where(
      and(
        eq(exerciseRenders.id, video.id),
        eq(exerciseRenders.videoGuid, video.videoGuid),
        eq(exerciseRenders.status, 'transcoding'),
      ),
    );
}

const LEASE_EXPIRED: EventError = {
  code: 'lease_expired',
  message: 'The worker stopped before the video was finished.',
};

/** Frees the renders whose worker died: back to pending while attempts are left, else dead-lettered. */
export async function expireLeases(db: Executor, limit: number): Promise<{ freed: Render[]; failed: Render[] }> {
  const expired = sql`r.lease_expires_at < now()`;
  const failed = await move(db, 'lease-exhausted', {
    where: sql`${expired} and r.attempts >= r.max_attempts`,
    cause: 'lease-expired',
    error: LEASE_EXPIRED,
    limit,
  });
  const freed = await move(db, 'lease-expired', {
    where: sql`${expired} and r.attempts < r.max_attempts`,
    set: sql`dispatched_at = null`,
    cause: 'lease-expired',
    error: LEASE_EXPIRED,
    limit,
  });
  return { freed, failed };
}

/** Transcodes that Bunny should have told of by now, longest overdue first. */
export function overdueTranscodes(db: Executor, limit: number): Promise<Render[]> {
  return db
    .select()
    .from(exerciseRenders)
    .where(and(eq(exerciseRenders.status, 'transcoding'), sql`${exerciseRenders.transcodeDeadlineAt} < now()`))
    .orderBy(exerciseRenders.transcodeDeadlineAt)
    .limit(limit);
}

export async function findRenderByVideo(db: Executor, videoGuid: string): Promise<Render | null> {
  const found = await db.select().from(exerciseRenders).where(eq(exerciseRenders.videoGuid, videoGuid)).limit(1);
  return found[0] ?? null;
}

/** The render that gave this video up, lately enough for its history to tell; null where none did. */
export async function findWhoGaveUp(db: Executor, videoGuid: string): Promise<string | null> {
  const found = await db
    .select({ renderId: renderEvents.renderId })
    .from(renderEvents)
    .where(eq(renderEvents.gaveUpVideo, videoGuid))
    .limit(1);
  return found[0]?.renderId ?? null;
}

export async function findRender(db: Executor, id: string): Promise<Render | null> {
  const found = await db.select().from(exerciseRenders).where(eq(exerciseRenders.id, id)).limit(1);
  return found[0] ?? null;
}

/** Whose exercise it is, which decides where its assets lie; null where it does not exist. */
export async function findExerciseOwner(
  db: Executor,
  exerciseId: string,
): Promise<{ tier: 'platform' } | { tier: 'org'; orgId: string } | null> {
  const [exercise] = await db
    .select({ tier: exercises.tier, orgId: exercises.orgId })
    .from(exercises)
    .where(eq(exercises.id, exerciseId));
  if (!exercise) return null;
  return exercise.orgId === null ? { tier: 'platform' } : { tier: 'org', orgId: exercise.orgId };
}

/** How many bakes have ended with a master uploaded since `since`, among these renders. */
export async function countBakes(db: Executor, renderIds: readonly string[], since: Date): Promise<number> {
  if (renderIds.length === 0) return 0;
  const [row] = await rows<{ bakes: string }>(
    db,
    sql`select count(*) as bakes from render_events
         where ${inArray(sql`render_id`, [...renderIds])} and cause = 'uploaded' and at >= ${since.toISOString()}`,
  );
  return Number(row?.bakes ?? 0);
}
