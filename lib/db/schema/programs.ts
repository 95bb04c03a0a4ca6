import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, pgTable, text, unique, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import type { Dose } from '../../domain/recipe.ts';
import { createdAt, id, time, updatedAt } from './columns.ts';
import { exercises, organisations } from './exercises.ts';
import { exerciseRenders } from './renders.ts';

const lifeCycle = { enum: ['draft', 'published', 'archived'] } as const;

export const programs = pgTable(
  'programs',
  {
    id: id(),
    orgId: uuid()
      .notNull()
      .references(() => organisations.id, { onDelete: 'cascade' }),
    title: text().notNull(),
    language: text().notNull(),
    status: text(lifeCycle).notNull().default('draft'),
    createdBy: text().notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    publishedAt: time(),
    publishedBy: text(),
    archivedAt: time(),
    /** When all of it was first seen to be ready: once, whatever becomes of it later. */
    readyAt: time(),
  },
  (t) => [
    index('programs_org_idx').on(t.orgId, t.id),
    index('programs_unready_idx').on(t.id).where(sql`${t.status} = 'published' and ${t.readyAt} is null`),
    check('programs_status_known', sql`${t.status} in ('draft', 'published', 'archived')`),
    check('programs_published_has_time', sql`${t.status} <> 'published' or ${t.publishedAt} is not null`),
  ],
);

/** An ordered list of items; part of a programme, or standing alone. */
export const sessions = pgTable(
  'sessions',
  {
    id: id(),
    orgId: uuid()
      .notNull()
      .references(() => organisations.id, { onDelete: 'cascade' }),
    programId: uuid().references(() => programs.id, { onDelete: 'cascade' }),
    position: integer().notNull().default(0),
    title: text().notNull(),
    /** Of a session that stands alone; one of a programme speaks the programme's. */
    language: text(),
    status: text(lifeCycle).notNull().default('draft'),
    createdBy: text(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    publishedAt: time(),
  },
  (t) => [
    index('sessions_alone_idx').on(t.orgId, t.id).where(sql`${t.programId} is null`),
    // For an organisation that has most of them: along the ids of all sessions it would meet every programme's first.
    index('sessions_alone_newest_idx').on(t.id).where(sql`${t.programId} is null`),
    uniqueIndex('sessions_order_key').on(t.programId, t.position).where(sql`${t.programId} is not null`),
    check('sessions_status_known', sql`${t.status} in ('draft', 'published', 'archived')`),
  ],
);

export const sessionItems = pgTable(
  'session_items',
  {
    id: id(),
    sessionId: uuid()
      .notNull()
      .references(() => sessions.id, { onDelete: 'cascade' }),
    position: integer().notNull(),
    exerciseId: uuid()
      .notNull()
      .references(() => exercises.id),
    dose: jsonb().$type<Dose>().notNull(),
    /** Set when the item is published: what it resolved to. */
    renderId: uuid().references(() => exerciseRenders.id),
  },
  (t) => [
    unique('session_items_order_key').on(t.sessionId, t.position),
    index('session_items_render_idx').on(t.renderId),
  ],
);

export const assignments = pgTable(
  'assignments',
  {
    id: id(),
    programId: uuid()
      .notNull()
      .references(() => programs.id, { onDelete: 'cascade' }),
    patientId: text().notNull(),
    notifyWhenReady: boolean().notNull().default(false),
    /** When the patient was told that it is ready: once, whatever becomes of it later. */
    notifiedAt: time(),
    assignedBy: text().notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    unique('assignments_key').on(t.programId, t.patientId),
    index('assignments_patient_idx').on(t.patientId, t.id),
    index('assignments_to_tell_idx').on(t.programId).where(sql`${t.notifyWhenReady} and ${t.notifiedAt} is null`),
  ],
);

/** A patient doing a session once. */
export const runs = pgTable(
  'runs',
  {
    id: id(),
    sessionId: uuid()
      .notNull()
      .references(() => sessions.id, { onDelete: 'cascade' }),
    patientId: text().notNull(),
    startedAt: createdAt(),
    finishedAt: time(),
  },
  (t) => [index('runs_patient_idx').on(t.patientId, t.startedAt.desc()), index('runs_session_idx').on(t.sessionId)],
);

export const notifications = pgTable(
  'notifications',
  {
    id: id(),
    recipient: text().notNull(),
    orgId: uuid().references(() => organisations.id, { onDelete: 'cascade' }),
    kind: text().notNull(),
    payload: jsonb().$type<Record<string, unknown>>().notNull(),
    createdAt: createdAt(),
    readAt: time(),
  },
  (t) => [index('notifications_recipient_idx').on(t.recipient, t.createdAt, t.id)],
);
