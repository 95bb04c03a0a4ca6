import { and, eq, isNull, or, sql } from 'drizzle-orm';
import type { QueuedRender } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { exerciseRenders } from './schema/index.ts';

/**
 * Pending renders that the queue may not know: never dispatched, or dispatched longer than `staleMs` ago and still not
 * claimed. Those that wait for a later attempt are left alone until then. In the order in which they are to be baked.
 */
export function undispatched(db: Executor, options: { staleMs: number; limit: number }): Promise<QueuedRender[]> {
  const r = exerciseRenders;
  return db
    .select({ id: r.id, recipeHash: r.recipeHash, generation: r.generation, fairTag: r.fairTag, urgent: r.urgent })
    .from(r)
    .where(
      and(
        eq(r.status, 'pending'),
        or(isNull(r.dispatchedAt), sql`${r.dispatchedAt} < now() - ${options.staleMs} * interval '1 millisecond'`),
        or(isNull(r.notBefore), sql`${r.notBefore} <= now()`),
      ),
    )
    .orderBy(sql`${r.urgent} desc`, r.fairTag)
    .limit(options.limit);
}

/** Notes that the queue has them. A render requeued meanwhile is of another generation and stays undispatched. */
export async function markDispatched(
  db: Executor,
  renders: readonly Pick<QueuedRender, 'id' | 'generation'>[],
): Promise<void> {
  if (renders.length === 0) return;
  const given = JSON.stringify(renders.map(({ id, generation }) => ({ id, generation })));
  await db.execute(sql`
    update exercise_renders r set dispatched_at = now()
      from jsonb_to_recordset(${given}::jsonb) as given(id uuid, generation int)
     where r.id = given.id and r.generation = given.generation and r.status = 'pending'`);
}
