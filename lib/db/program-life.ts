import { and, eq, sql } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import { AppError } from '../errors.ts';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';
import { programs } from './schema/index.ts';

interface Reach {
  id: string;
  /** Null: a superadmin, who reaches every organisation's. */
  orgId: string | null;
}

/**
 * Takes a programme and its sessions out of use: patients do not see it any more. What has been made of it stays, also
 * for others who play the same. One that is archived stays so. Run it in a transaction. Throws `not_found`.
 */
export async function archiveProgram(tx: Executor, { id, orgId }: Reach): Promise<void> {
  const [program] = await tx
    .select({ status: programs.status })
    .from(programs)
    .where(and(eq(programs.id, id), orgId === null ? undefined : eq(programs.orgId, orgId)))
    // A publish going on is waited for, so that it is not undone or overtaken half way.
    .for('update');
  if (!program) throw new AppError('not_found');
  if (program.status === 'archived') return;
  await tx.update(programs).set({ status: 'archived', archivedAt: sql`now()` }).where(eq(programs.id, id));
  await tx.execute(sql`update sessions set status = 'archived', updated_at = now() where program_id = ${id}`);
}

/**
 * Makes a draft with the same sessions and items, whatever state the original is in: the way to a new version of what is
 * published. One statement; answers the id of the copy. Throws `not_found`.
 */
export async function copyProgram(
  db: Executor,
  { id, orgId, title, by }: Reach & { title: string | undefined; by: string },
): Promise<string> {
  const [copy] = await rows<{ id: string }>(
    db,
    sql`with source as (
      select * from programs where id = ${id} and (${orgId}::uuid is null or org_id = ${orgId}) for share
    ), made as (
      insert into programs (id, org_id, title, language, created_by)
      select ${uuidv7()}::uuid, org_id, coalesce(${title ?? null}::text, title), language, ${by} from source
      returning id, org_id
    ), pairs as materialized (
      select s.id as from_id, gen_random_uuid() as to_id, s.position, s.title from sessions s join source on s.program_id = source.id
    ), copied as (
      insert into sessions (id, org_id, program_id, position, title)
      select pairs.to_id, made.org_id, made.id, pairs.position, pairs.title from pairs cross join made
    ), items as (
      insert into session_items (id, session_id, position, exercise_id, dose)
      select gen_random_uuid(), pairs.to_id, i.position, i.exercise_id, i.dose
        from pairs join session_items i on i.session_id = pairs.from_id
    )
    select id from made`,
  );
  if (!copy) throw new AppError('not_found');
  return copy.id;
}
