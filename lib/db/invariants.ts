import { type SQL, sql } from 'drizzle-orm';
import type { HistoryEvent } from '../domain/history.ts';
import type { RenderStatus } from '../domain/render-states.ts';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';

/** Something that must hold of every row, and the rows that break it: their ids, as `id`. */
interface Invariant {
  name: string;
  sentence: string;
  broken: SQL;
}

const renders = (where: SQL) => sql`select r.id from exercise_renders r where ${where}`;

/** An item of a session that is published in a published programme. */
const publishedItems = sql`session_items i
  join sessions s on s.id = i.session_id and s.status = 'published'
  join programs p on p.id = s.program_id and p.status = 'published'`;

/** The database itself refuses some of them; they are looked at all the same, for a constraint may be dropped. */
export const INVARIANTS: readonly Invariant[] = [
  {
    name: 'ready-plays',
    sentence: 'A ready render has its manifest, its video, its master and the time when it became so.',
    broken: renders(
      sql`r.status = 'ready' and (r.manifest_url is null or r.video_guid is null or r.master_sha256 is null or r.ready_at is null)`,
    ),
  },
  {
    name: 'rendering-is-leased',
    sentence: 'A render that is baked is under a lease.',
    broken: renders(sql`r.status = 'rendering' and (r.lease_token is null or r.lease_expires_at is null)`),
  },
  {
    name: 'lease-only-while-rendering',
    sentence: 'Only a render that is baked is under a lease.',
    broken: renders(sql`r.status <> 'rendering' and (r.lease_token is not null or r.lease_expires_at is not null)`),
  },
  {
    name: 'transcoding-has-video',
    sentence: 'A transcoding render has a video and a time when Bunny is asked for it.',
    broken: renders(sql`r.status = 'transcoding' and (r.video_guid is null or r.transcode_deadline_at is null)`),
  },
  {
    name: 'failed-says-why',
    sentence: 'A failed render has an error code.',
    broken: renders(sql`r.status = 'failed' and r.error_code is null`),
  },
  {
    name: 'attempts-in-bounds',
    sentence: 'No render has more attempts than it may have, and a pending one has some left.',
    broken: renders(
      sql`r.attempts < 0 or r.attempts > r.max_attempts or (r.status = 'pending' and r.attempts >= r.max_attempts)`,
    ),
  },
  {
    name: 'one-row-per-video',
    sentence: 'No two renders have the same video.',
    broken: renders(
      sql`r.video_guid in (select video_guid from exercise_renders where video_guid is not null group by video_guid having count(*) > 1)`,
    ),
  },
  {
    name: 'published-item-has-render',
    sentence: 'Every item of a published programme has a render.',
    broken: sql`select i.id from ${publishedItems} where i.render_id is null`,
  },
  {
    name: 'item-plays-its-exercise',
    sentence: 'An item plays a render of its own exercise.',
    broken: sql`select i.id from session_items i join exercise_renders r on r.id = i.render_id where r.exercise_id <> i.exercise_id`,
  },
];

export interface Broken {
  name: string;
  sentence: string;
  count: number;
  /** The first ids, renders' or items'. */
  ids: string[];
}

/** The invariants that do not hold, each looked at by one statement; at most `limit` ids of each. */
export async function brokenInvariants(db: Executor, limit: number): Promise<Broken[]> {
  const broken: Broken[] = [];
  for (const { name, sentence, broken: ids } of INVARIANTS) {
    const found = await rows<{ id: string; count: number }>(
      db,
      sql`select b.id, (count(*) over ())::int as count from (${ids}) b order by b.id limit ${limit}`,
    );
    const [first] = found;
    if (first) broken.push({ name, sentence, count: first.count, ids: found.map(({ id }) => id) });
  }
  return broken;
}

export interface RenderHistory {
  id: string;
  status: RenderStatus;
  generation: number;
  attempts: number;
  /** False where the first events may have been pruned. */
  whole: boolean;
  events: HistoryEvent[];
}

/**
 * Rows with their histories in the order of their ids, `limit` at a time; both are read at one moment, so that a row
 * that moves meanwhile does not seem to differ from its history. Pruning takes the oldest events of all first: a render
 * made after the oldest event that is left has its history whole.
 */
export function readHistories(db: Executor, page: { after: string | null; limit: number }): Promise<RenderHistory[]> {
  return rows<RenderHistory & Record<string, unknown>>(
    db,
    sql`select r.id, r.status, r.generation, r.attempts,
               coalesce(r.created_at > (select min(at) from render_events), false) as whole,
               coalesce((select jsonb_agg(jsonb_build_object('generation', e.generation, 'fromStatus', e.from_status,
                   'toStatus', e.to_status, 'attempt', e.attempt, 'cause', e.cause, 'leaseToken', e.lease_token) order by e.id)
                 from render_events e where e.render_id = r.id), '[]'::jsonb) as events
          from exercise_renders r
         where ${page.after === null ? sql`true` : sql`r.id > ${page.after}`}
         order by r.id limit ${page.limit}`,
  );
}
