import { sql } from 'drizzle-orm';
import { isTerminal, type RenderStatus } from '../domain/render-states.ts';
import { may } from '../domain/roles.ts';
import { doubtsVideo } from '../domain/transcode.ts';
import { AppError } from '../errors.ts';
import { type Actor, audit } from './audit.ts';
import type { Db, Executor } from './client.ts';
import { cancelByOperator, endWaits } from './operate.ts';
import { retryConflict } from './outage.ts';
import { requeueRenders } from './requeue.ts';
import { rows } from './rows.ts';

/** What a clinic does with one of its renders; operators work on whole sets, lib/pipeline/operate.ts. */

export interface RenderState {
  id: string;
  status: RenderStatus;
  generation: number;
}

interface Known extends RenderState {
  errorCode: string | null;
  /** It waits for a later attempt. */
  waits: boolean;
  /** Played by a published session of somebody else: of another organisation, or of another specialist. */
  others: boolean;
}

/**
 * The render as far as this person may know of it: because a session of their organisation plays it. Whose it is beside
 * that depends on the role: a manager speaks for the whole organisation, a specialist for what they published, and for a
 * superadmin, who belongs to none, nobody is somebody else.
 */
async function findFor(tx: Executor, renderId: string, { sub, org, role }: Actor): Promise<Known> {
  const mine = may(role, 'content.write')
    ? sql`s.org_id = ${org}::uuid`
    : sql`(s.org_id = ${org}::uuid and coalesce(p.published_by, s.created_by) = ${sub})`;
  const [found] = await rows<{
    id: string;
    status: RenderStatus;
    generation: number;
    error_code: string | null;
    waits: boolean;
    others: boolean | null;
    known: boolean | null;
  }>(
    tx,
    sql`select r.id, r.status, r.generation, r.error_code, coalesce(r.not_before > now(), false) as waits, needed.others, needed.known
          from exercise_renders r
          cross join lateral (
            select bool_or(s.org_id = ${org}::uuid) as known,
                   bool_or(s.status = 'published' and not coalesce(${mine}, false)) as others
              from session_items i join sessions s on s.id = i.session_id left join programs p on p.id = s.program_id
             where i.render_id = r.id) needed
         where r.id = ${renderId}`,
  );
  if (!found || (org !== null && found.known !== true)) throw new AppError('not_found');
  const { id, status, generation, error_code: errorCode, waits } = found;
  return { id, status, generation, errorCode, waits, others: org !== null && found.others === true };
}

/**
 * Asks for a failed render again, and at once for one that waits for a later attempt; for a ready one only with `force`,
 * by a superadmin. It queues among the renders of who asks. Throws `not_found`, `forbidden`, `render_ready`,
 * `render_under_way`.
 */
export function retryForClinic(db: Db, renderId: string, actor: Actor, force: boolean): Promise<RenderState> {
  if (force && actor.role !== 'superadmin') throw new AppError('forbidden');
  return retryConflict(() =>
    db.transaction(async (tx) => {
      const render = await findFor(tx, renderId, actor);
      const { status, errorCode, waits } = render;
      if (status === 'ready' && !force) throw new AppError('render_ready');
      if (status === 'failed' || status === 'ready') {
        const forgetVideo = status === 'ready' || doubtsVideo(errorCode);
        const where = sql`r.id = ${renderId}`;
        const [requeued] = await requeueRenders(tx, where, {
          from: status,
          cause: 'retried',
          forgetVideo,
          by: actor.sub,
        });
        if (!requeued) throw new AppError('render_under_way');
      } else if (!waits || (await endWaits(tx, [renderId])).length === 0) {
        throw new AppError('render_under_way');
      }
      await audit(tx, actor, 'render.retry', renderId, { from: status, errorCode, force });
      return findFor(tx, renderId, actor);
    }),
  );
}

/**
 * Ends a render that is under way and that nobody else needs; a worker that bakes it stops within a heartbeat. Throws
 * `not_found`, `render_shared`, `render_ended`.
 */
export function cancelForClinic(db: Db, renderId: string, actor: Actor): Promise<RenderState> {
  return retryConflict(() =>
    db.transaction(async (tx) => {
      const render = await findFor(tx, renderId, actor);
      if (isTerminal(render.status)) throw new AppError('render_ended');
      if (render.others) throw new AppError('render_shared');
      const cancelled = await cancelByOperator(tx, [renderId], 'cancelled');
      if (cancelled.length === 0) throw new AppError('render_ended');
      await audit(tx, actor, 'render.cancel', renderId, { from: render.status });
      return findFor(tx, renderId, actor);
    }),
  );
}
