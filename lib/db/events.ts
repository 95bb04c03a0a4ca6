import { type SQL, sql } from 'drizzle-orm';
import type { OutboundEvent } from '../domain/outbound.ts';

/**
 * Events are rows: one delivery for each endpoint that has chosen the event, written by the statement that makes the
 * transition. These are parts of such statements; where nobody listens they write nothing and look at little.
 */

/** Of one render a clinic may have any number of programmes; a body is to be small. */
const MOST_PROGRAMS = 100;

/**
 * Of the rows of `moved`, to every organisation with a published session that plays them. What one is told names its own
 * programmes only: a render of a platform exercise is shared, and nobody learns with whom.
 *
 * Who plays them is found first, and only where anybody at all has chosen the event. Left to itself the planner may begin
 * with the endpoints and join all sessions to them: that table is small or empty when the plan is made and kept.
 */
export const tellEndpointsOfRenders = (event: Extract<OutboundEvent, `exercise.${string}`>): SQL => sql`
  insert into webhook_deliveries (id, endpoint_id, type, data)
  with playing as materialized (
    select m.id, s.org_id,
           coalesce(to_jsonb((array_agg(distinct s.program_id) filter (where s.program_id is not null))[1:${sql.raw(String(MOST_PROGRAMS))}]), '[]') as program_ids
      from moved m join session_items i on i.render_id = m.id join sessions s on s.id = i.session_id
     where s.status = 'published' and exists (select from webhook_endpoints where enabled and ${event}::text = any(events))
     group by m.id, s.org_id
  )
  select gen_random_uuid(), w.id, ${event}::text,
         jsonb_build_object('renderId', m.id, 'exerciseId', m.exercise_id, 'language', m.language, 'programIds', p.program_ids)
         ${event === 'exercise.render_failed' ? sql`|| jsonb_build_object('error', jsonb_build_object('code', m.error_code, 'sentence', m.error_message))` : sql``}
    from playing p join moved m on m.id = p.id
    join webhook_endpoints w on w.org_id = p.org_id and w.enabled and ${event}::text = any(w.events)`;

/** Of the programmes in `became`, to their organisation. */
export const tellEndpointsOfPrograms: SQL = sql`
  insert into webhook_deliveries (id, endpoint_id, type, data)
  select gen_random_uuid(), w.id, 'program.ready', jsonb_build_object('programId', p.id, 'title', p.title)
    from became p join webhook_endpoints w on w.org_id = p.org_id and w.enabled and 'program.ready' = any(w.events)`;
