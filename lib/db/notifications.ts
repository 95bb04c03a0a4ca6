import { and, desc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { tellEndpointsOfPrograms } from './events.ts';
import { type Page, type PageRequest, toPage } from './page.ts';
import { rows } from './rows.ts';
import { notifications } from './schema/index.ts';

export type Notification = typeof notifications.$inferSelect;

/** Whose they are: a `sub` means a person only together with the organisation; null for a superadmin. */
export interface Recipient {
  sub: string;
  org: string | null;
}

const to = ({ sub, org }: Recipient) =>
  and(eq(notifications.recipient, sub), org === null ? isNull(notifications.orgId) : eq(notifications.orgId, org));

/** Newest first. */
export async function listNotifications(
  db: Executor,
  { recipient, unread, limit, after }: PageRequest & { recipient: Recipient; unread: boolean },
): Promise<Page<Notification>> {
  const later: SQL | undefined =
    after === null
      ? undefined
      : sql`(${notifications.createdAt}, ${notifications.id}) < (select n.created_at, n.id from notifications n where n.id = ${after})`;
  const found = await db
    .select()
    .from(notifications)
    .where(and(to(recipient), unread ? isNull(notifications.readAt) : undefined, later))
    .orderBy(desc(notifications.createdAt), desc(notifications.id))
    .limit(limit + 1);
  return toPage(found, limit, ({ id }) => id);
}

/** False where this person has none such. One that was read stays as it is. */
export async function readNotification(db: Executor, id: string, recipient: Recipient): Promise<boolean> {
  const read = await db
    .update(notifications)
    .set({ readAt: sql`coalesce(${notifications.readAt}, now())` })
    .where(and(eq(notifications.id, id), to(recipient)))
    .returning({ id: notifications.id });
  return read.length > 0;
}

/**
 * Tells of programmes that have become ready, each once: the patients who asked for it, and the organisation's endpoints.
 * Of the given programmes, or of all; after the commits that made them so, because two renders that end at once do not
 * see each other. What nobody came to call this for is found by the next call for all. Answers how many patients were told.
 */
export async function tellReady(db: Executor, programIds?: readonly string[]): Promise<number> {
  if (programIds?.length === 0) return 0;
  const among = (column: SQL) => (programIds ? sql`and ${column} = any(${sql.param([...programIds])}::uuid[])` : sql``);
  const told = await rows(
    db,
    sql`with untold as (
      select a.program_id as id from assignments a where a.notify_when_ready and a.notified_at is null ${among(sql`a.program_id`)}
      union
      select p.id from programs p where p.status = 'published' and p.ready_at is null ${among(sql`p.id`)}
    ), ready as materialized (
      select p.id, p.org_id, p.title from programs p join untold using (id)
       where p.status = 'published'
         and exists (select from session_items i join sessions s on s.id = i.session_id where s.program_id = p.id)
         and not exists (select from session_items i join sessions s on s.id = i.session_id
                           left join exercise_renders r on r.id = i.render_id
                          where s.program_id = p.id and r.status is distinct from 'ready')
    ), became as (
      update programs p set ready_at = now()
       where p.id in (select u.id from programs u join ready using (id) where u.ready_at is null
                       order by u.id for no key update of u skip locked)
      returning p.id, p.org_id, p.title
    ), announced as (${tellEndpointsOfPrograms}
    ), told as (
      update assignments a set notified_at = now()
        from ready p
       where p.id = a.program_id and a.notify_when_ready and a.notified_at is null
      returning a.patient_id, p.id as program_id, p.org_id, p.title
    )
    insert into notifications (id, recipient, org_id, kind, payload)
    select gen_random_uuid(), patient_id, org_id, 'program.ready', jsonb_build_object('programId', program_id, 'title', title)
      from told
    returning 1 as one`,
  );
  return told.length;
}
