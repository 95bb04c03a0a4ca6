import { sql } from 'drizzle-orm';
import {
  bigint,
  bigserial,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  smallint,
  text,
  unique,
  uuid,
} from 'drizzle-orm/pg-core';
import type { Recipe } from '../../domain/recipe.ts';
import type { RenderStatus } from '../../domain/render-states.ts';
import { createdAt, id, time, updatedAt } from './columns.ts';
import { exercises } from './exercises.ts';

export interface BaselineRow {
  name: string;
  width: number;
  height: number;
  url: string;
  sha256: string;
  bytes: number;
}

export interface WarningRow {
  code: string;
  sentence: string;
}

/**
 * One bake of one recipe, shared by everyone who needs it. A `pending` row is the outbox of the queue: what BullMQ
 * holds is a copy that can be made again from here at any time.
 *
 * No index may name what the mirror writes (`dispatchedAt`, `mirroredPriority`), and pages are filled half (`fillfactor`,
 * in the migration that set it): so its note of a thousand rows just inserted touches no index and no other page.
 */
export const exerciseRenders = pgTable(
  'exercise_renders',
  {
    id: id(),
    exerciseId: uuid()
      .notNull()
      .references(() => exercises.id),
    recipeHash: text().notNull(),
    language: text().notNull(),
    recipe: jsonb().$type<Recipe>().notNull(),
    status: text().$type<RenderStatus>().notNull().default('pending'),
    generation: integer().notNull().default(0),
    attempts: integer().notNull().default(0),
    maxAttempts: integer().notNull().default(5),

    leaseToken: uuid(),
    leaseExpiresAt: time(),
    claimedAt: time(),
    claimedBy: text(),
    progressStage: text(),
    progressPercent: smallint(),

    dispatchedAt: time(),
    /** What the queue was last told; differs from what it should be after a bump. */
    mirroredPriority: integer(),
    notBefore: time(),
    fairKey: text().notNull(),
    fairTag: bigint({ mode: 'number' }).notNull(),
    urgent: boolean().notNull().default(false),
    /** The round that was being served when it was last enqueued: from this and the served one the clock never goes back. */
    enqueuedRound: bigint({ mode: 'number' }).notNull().default(0),
    /** Whose turn its last claim was, and in which round: kept when it is enqueued anew, with another place or for another. */
    servedKey: text(),
    servedRound: bigint({ mode: 'number' }),

    masterSha256: text(),
    videoGuid: text(),
    videoCollectionId: text(),
    manifestUrl: text(),
    captionsUrl: text(),
    posterUrl: text(),
    baselines: jsonb().$type<BaselineRow[]>().notNull().default([]),
    durationMs: integer(),
    transcodeStartedAt: time(),
    transcodeCheckedAt: time(),
    transcodeDeadlineAt: time(),

    errorCode: text(),
    errorMessage: text(),
    warnings: jsonb().$type<WarningRow[]>().notNull().default([]),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    readyAt: time(),
  },
  (t) => [
    unique('exercise_renders_key').on(t.exerciseId, t.recipeHash, t.language),
    index('exercise_renders_lease_idx').on(t.leaseExpiresAt).where(sql`${t.status} = 'rendering'`),
    index('exercise_renders_transcode_idx').on(t.transcodeDeadlineAt).where(sql`${t.status} = 'transcoding'`),
    index('exercise_renders_pending_tag_idx').on(t.fairTag).where(sql`${t.status} = 'pending'`),
    index('exercise_renders_enqueued_idx').on(t.enqueuedRound),
    index('exercise_renders_served_idx').on(t.servedRound).where(sql`${t.servedRound} is not null`),
    index('exercise_renders_fair_key_idx').on(t.fairKey, t.fairTag).where(sql`${t.status} in ('pending', 'rendering')`),
    index('exercise_renders_video_idx').on(t.videoGuid).where(sql`${t.videoGuid} is not null`),
    // Checked at every move of every row: with the length inside the expression it takes Postgres twenty times as long.
    check('exercise_renders_hash_hex', sql`length(${t.recipeHash}) = 64 and ${t.recipeHash} ~ '^[0-9a-f]+$'`),
    check(
      'exercise_renders_status_known',
      sql`${t.status} in ('pending', 'rendering', 'transcoding', 'ready', 'failed')`,
    ),
    check(
      'exercise_renders_attempts_positive',
      sql`${t.attempts} >= 0 and ${t.maxAttempts} > 0 and ${t.generation} >= 0`,
    ),
    check(
      'exercise_renders_rendering_is_leased',
      sql`${t.status} <> 'rendering' or (${t.leaseToken} is not null and ${t.leaseExpiresAt} is not null)`,
    ),
    check('exercise_renders_lease_only_while_rendering', sql`${t.status} = 'rendering' or ${t.leaseToken} is null`),
    check(
      'exercise_renders_ready_plays',
      sql`${t.status} <> 'ready' or (${t.manifestUrl} is not null and ${t.videoGuid} is not null and ${t.masterSha256} is not null and ${t.readyAt} is not null)`,
    ),
    check(
      'exercise_renders_transcoding_has_video',
      sql`${t.status} <> 'transcoding' or (${t.videoGuid} is not null and ${t.transcodeDeadlineAt} is not null)`,
    ),
    check('exercise_renders_failed_says_why', sql`${t.status} <> 'failed' or ${t.errorCode} is not null`),
  ],
);

/** What is kept of an error in the history: the sentence for the clinic and the details for ops. */
export interface EventError {
  code: string;
  message: string;
  detail?: string | undefined;
}

/** Append-only history of every render: written in the transaction of the move it tells of. */
export const renderEvents = pgTable(
  'render_events',
  {
    id: bigserial({ mode: 'number' }).primaryKey(),
    renderId: uuid()
      .notNull()
      .references(() => exerciseRenders.id, { onDelete: 'cascade' }),
    generation: integer().notNull(),
    fromStatus: text().$type<RenderStatus>(),
    toStatus: text().$type<RenderStatus>().notNull(),
    attempt: integer().notNull(),
    cause: text().notNull(),
    /** The token that the writer carried, for moves that a lease fences: what tells one writer from another afterwards. */
    leaseToken: uuid(),
    error: jsonb().$type<EventError>(),
    /** The video that the row named until this move and does not name any more. */
    gaveUpVideo: text(),
    at: createdAt(),
  },
  (t) => [
    index('render_events_render_idx').on(t.renderId, t.id),
    index('render_events_at_idx').on(t.at),
    index('render_events_gave_up_idx').on(t.gaveUpVideo).where(sql`${t.gaveUpVideo} is not null`),
    index('render_events_stage_ends_idx').on(t.toStatus, t.id).where(sql`${t.toStatus} in ('transcoding', 'ready')`),
  ],
);

/** The inbox of Bunny's webhook: stored before it is answered, applied afterwards, kept for replay. */
export const webhookEvents = pgTable(
  'webhook_events',
  {
    id: id(),
    videoGuid: text().notNull(),
    libraryId: bigint({ mode: 'number' }).notNull(),
    status: integer().notNull(),
    /** The exact bytes that were signed. */
    body: text().notNull(),
    verifiedBy: text({ enum: ['signature', 'token'] }).notNull(),
    receivedAt: createdAt(),
    appliedAt: time(),
    outcome: text(),
    tries: integer().notNull().default(0),
    nextTryAt: time().notNull().defaultNow(),
  },
  (t) => [
    index('webhook_events_unapplied_idx').on(t.nextTryAt).where(sql`${t.appliedAt} is null`),
    index('webhook_events_video_idx').on(t.videoGuid),
    index('webhook_events_received_idx').on(t.receivedAt),
  ],
);

/** When the rare duties last ran anywhere: many workers keep one timer, and a restart does not set it back. */
export const dutyRuns = pgTable('duty_runs', { duty: text().primaryKey(), ranAt: time().notNull().defaultNow() });
