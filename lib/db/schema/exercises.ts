import { sql } from 'drizzle-orm';
import { bigint, check, index, integer, jsonb, pgTable, text, unique, uuid } from 'drizzle-orm/pg-core';
import { createdAt, id, updatedAt } from './columns.ts';

export const organisations = pgTable('organisations', {
  id: id(),
  name: text().notNull(),
  createdAt: createdAt(),
});

/** Who works where; a superadmin belongs to no organisation. `subject` is the `sub` of the person's token. */
export const members = pgTable(
  'members',
  {
    id: id(),
    orgId: uuid().references(() => organisations.id, { onDelete: 'cascade' }),
    subject: text().notNull(),
    role: text({ enum: ['superadmin', 'manager', 'specialist'] }).notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    unique('members_org_subject_key').on(t.orgId, t.subject).nullsNotDistinct(),
    check('members_role_known', sql`${t.role} in ('superadmin', 'manager', 'specialist')`),
    check('members_superadmin_has_no_org', sql`(${t.role} = 'superadmin') = (${t.orgId} is null)`),
  ],
);

/** Where the repetition is inside the source, in milliseconds after its first frame; a missing end is the source's. */
export interface RepMarks {
  startMs?: number | undefined;
  turnMs?: number | undefined;
  endMs?: number | undefined;
}

export const exercises = pgTable(
  'exercises',
  {
    id: id(),
    tier: text({ enum: ['platform', 'org'] }).notNull(),
    orgId: uuid().references(() => organisations.id, { onDelete: 'cascade' }),
    /** Name by language tag. */
    names: jsonb().$type<Record<string, string>>().notNull(),
    repMarks: jsonb().$type<RepMarks>().notNull().default({}),
    createdBy: text().notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    index('exercises_org_idx').on(t.orgId, t.id),
    check('exercises_tier_known', sql`${t.tier} in ('platform', 'org')`),
    check('exercises_owner_fits_tier', sql`(${t.tier} = 'platform') = (${t.orgId} is null)`),
  ],
);

/** What the media service measured of an asset; the shape is `validationReport` of the media contract. */
type Report = Record<string, unknown>;

/** Every source ever uploaded for an exercise; the newest one is current, older ones stay for what was baked of them. */
export const exerciseSources = pgTable(
  'exercise_sources',
  {
    id: id(),
    exerciseId: uuid()
      .notNull()
      .references(() => exercises.id, { onDelete: 'cascade' }),
    sha256: text().notNull(),
    bytes: bigint({ mode: 'number' }).notNull(),
    durationMs: integer().notNull(),
    report: jsonb().$type<Report>().notNull(),
    uploadedBy: text().notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    index('exercise_sources_newest_idx').on(t.exerciseId, t.createdAt),
    check('exercise_sources_sha256_hex', sql`${t.sha256} ~ '^[0-9a-f]{64}$'`),
    check('exercise_sources_duration_positive', sql`${t.durationMs} > 0`),
  ],
);

export const cueClips = pgTable(
  'cue_clips',
  {
    id: id(),
    exerciseId: uuid()
      .notNull()
      .references(() => exercises.id, { onDelete: 'cascade' }),
    language: text().notNull(),
    name: text().notNull(),
    sha256: text().notNull(),
    bytes: bigint({ mode: 'number' }).notNull(),
    durationMs: integer().notNull(),
    uploadedBy: text().notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    unique('cue_clips_key').on(t.exerciseId, t.language, t.name),
    check('cue_clips_sha256_hex', sql`${t.sha256} ~ '^[0-9a-f]{64}$'`),
  ],
);
