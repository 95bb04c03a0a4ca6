import { and, desc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
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
 * Tells the patients who asked for it that a programme is ready, each once: of the given programmes, or of all. After the
 * commits that made them so; what nobody came to call this for is found by the next call for all. Answers how many were told.
 */
export async function tellReady(db: Executor, programIds?: readonly string[]): Promise<number> {
  if (programIds?.length === 0) return 0;
  const among = programIds ? sql`and p.id = any(${sql.param([...programIds])}::uuid[])` : sql``;
  const told = await rows(
    db,
    sql`with told as (
      update assignments a set notified_at = now()
        from programs p
       where p.id = a.program_id and a.notify_when_ready and a.notified_at is null and p.status = 'published' ${among}
         and exists (select from session_items i join sessions s on s.id = i.session_id where s.program_id = p.id)
         and not exists (select from session_items i join sessions s on s.id = i.session_id
                           left join exercise_renders r on r.id = i.render_id
                          where s.program_id = p.id and r.status is distinct from 'ready')
      returning a.patient_id, p.id as program_id, p.org_id, p.title
    )
    insert into notifications (id, recipient, org_id, kind, payload)
    select gen_random_uuid(), patient_id, org_id, 'program.ready', jsonb_build_object('programId', program_id, 'title', title)
      from told
    returning 1 as one`,
  );
  return told.length;
}
