import { and, eq, type SQL, sql } from 'drizzle-orm';
import type { Unfinished } from '../domain/eta.ts';
import type { RenderStatus } from '../domain/render-states.ts';
import { AppError, type Issue } from '../errors.ts';
import type { Executor } from './client.ts';
import { nextTag } from './fairness.ts';
import { resolveItems } from './resolve-items.ts';
import { rows } from './rows.ts';
import { programs } from './schema/index.ts';

export interface Preview {
  /** Different renders that the programme needs. */
  total: number;
  ready: number;
  /** Under way already, for whomever. */
  inProgress: number;
  /** New ones, and failed ones that a publish asks for again. */
  toBake: number;
  /** Why it cannot be published, item by item; empty where it can. */
  problems: Issue[];
  /** What would not have ended right after the publish, for an estimate. */
  unfinished: Unfinished[];
}

/**
 * What a publish by `by` would do now; it changes nothing. For what is published already: what publishing again would do.
 * A constant number of statements. Throws `not_found`, `conflict` (archived).
 */
export async function previewPublish(
  db: Executor,
  { programId, orgId, by }: { programId: string; orgId: string | null; by: string },
): Promise<Preview> {
  const [program] = await db
    .select({ status: programs.status, language: programs.language })
    .from(programs)
    .where(and(eq(programs.id, programId), orgId === null ? undefined : eq(programs.orgId, orgId)));
  if (!program) throw new AppError('not_found');
  if (program.status === 'archived') {
    throw new AppError('conflict', { sentence: 'An archived programme cannot be published.' });
  }
  const scope = sql`s.program_id = ${programId}`;
  if (program.status === 'published') {
    const linked = sql`select distinct i.render_id from session_items i join sessions s on s.id = i.session_id where ${scope}`;
    return count(await findRenders(db, sql`r.id in (${linked})`, by), 0, []);
  }
  const { items, problems } = await resolveItems(db, scope, program.language);
  const wanted = new Map(
    items.map(({ exerciseId, hash }) => [`${exerciseId} ${hash}`, { exercise_id: exerciseId, hash }]),
  );
  const known = sql`(r.exercise_id, r.recipe_hash) in (
      select g.exercise_id, g.hash from jsonb_to_recordset(${JSON.stringify([...wanted.values()])}::jsonb) as g(exercise_id uuid, hash text))
    and r.language = ${program.language}`;
  const found = await findRenders(db, known, by);
  const empty = items.length + problems.length === 0;
  const noItems: Issue[] = empty
    ? [{ path: 'sessions', message: 'The programme has no exercises.', code: 'not_publishable' }]
    : [];
  return count(found, wanted.size - found.renders.length, [...problems, ...noItems]);
}

interface Found {
  renders: { status: RenderStatus; sinceMs: number; waitMs: number }[];
  /** Pending renders up to the round that the next of this specialist would get, and one round's more for each further. */
  before: number;
}

async function findRenders(db: Executor, where: SQL, by: string): Promise<Found> {
  const found = await rows<{ status: RenderStatus | null; since_ms: number; wait_ms: number | null; before: number }>(
    db,
    sql`with next as materialized (select ${nextTag(sql`${by}::text`)} as tag)
    select r.status, extract(epoch from now() - r.updated_at)::float8 * 1000 as since_ms,
           greatest(0, extract(epoch from r.not_before - now())::float8 * 1000) as wait_ms,
           (select count(*) from exercise_renders o where o.status = 'pending' and o.fair_tag <= (select tag from next))::int as before
      from (select 1) one left join exercise_renders r on ${where}`,
  );
  return {
    before: found[0]?.before ?? 0,
    renders: found.flatMap(({ status, since_ms: sinceMs, wait_ms: waitMs }) =>
      status === null ? [] : [{ status, sinceMs, waitMs: waitMs ?? 0 }],
    ),
  };
}

function count({ renders, before }: Found, added: number, problems: Issue[]): Preview {
  const having = (...statuses: RenderStatus[]) => renders.filter(({ status }) => statuses.includes(status));
  const toBake = added + having('failed').length;
  const underWay = having('pending', 'rendering', 'transcoding').flatMap(({ status, ...times }): Unfinished[] =>
    status === 'ready' || status === 'failed' ? [] : [{ status, ...times, ahead: before }],
  );
  const own: Unfinished[] =
    toBake > 0 ? [{ status: 'pending', sinceMs: 0, waitMs: 0, ahead: before + toBake - 1 }] : [];
  return {
    total: renders.length + added,
    ready: having('ready').length,
    inProgress: underWay.length,
    toBake,
    problems,
    unfinished: [...underWay, ...own],
  };
}
