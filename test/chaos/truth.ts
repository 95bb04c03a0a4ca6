import postgres from 'postgres';
import type { EventRow, InboxRow, ProgramRow, RenderRow } from './checker/evidence.ts';

/** A claim under way, as the row tells it. */
export interface Holding {
  id: string;
  token: string;
}

export type Truth = ReturnType<typeof openTruth>;

/** What Postgres says, asked beside the apps and without their code: a defect in that must not hide itself. */
export function openTruth(databaseUrl: string) {
  const sql = postgres(databaseUrl, {
    ...{ max: 4, onnotice: () => undefined, connect_timeout: 5, idle_timeout: 20 },
    transform: postgres.camel,
  });
  return {
    holdingsOf: (worker: string): Promise<Holding[]> =>
      sql<
        Holding[]
      >`select id, lease_token as token from exercise_renders where status = 'rendering' and claimed_by = ${worker}`,

    /** Renders of which this worker's bake has come to its upload. */
    uploadsOf: (worker: string): Promise<Holding[]> =>
      sql<Holding[]>`select id, lease_token as token from exercise_renders
                      where status = 'rendering' and claimed_by = ${worker} and video_guid is not null`,

    /** The processes of Postgres that serve clients at these ports. */
    backendsAt: async (ports: readonly number[]): Promise<number[]> => {
      const found = await sql<
        { pid: number }[]
      >`select pid from pg_stat_activity where client_port in ${sql([-2, ...ports])}`;
      return found.map(({ pid }) => pid);
    },

    /**
     * What has become of renders that were held under these claims: which of them somebody else holds now, and whether
     * any is still to be taken over or finished.
     */
    fateOf: async (held: readonly Holding[]): Promise<{ heldByOthers: string[]; open: boolean }> => {
      const tokens = held.map(({ token }) => token);
      const rows = await sql<{ recipeHash: string; status: string; taken: boolean }[]>`
        select recipe_hash, status, status = 'rendering' and lease_token not in ${sql(tokens)} as taken
          from exercise_renders where id in ${sql(held.map(({ id }) => id))}`;
      return {
        heldByOthers: rows.filter(({ taken }) => taken).map(({ recipeHash }) => recipeHash),
        open: rows.some(({ status }) => status === 'pending' || status === 'rendering'),
      };
    },

    /** How many renders have not come to an end, how many webhooks of their videos are not applied, and what moved last. */
    pulse: async () => {
      const [counts] = await sql<{ unfinished: number; unapplied: number; lastEvent: string; progress: number }[]>`
        select (select count(*)::int from exercise_renders where status not in ('ready', 'failed')) as unfinished,
               (select coalesce(max(id), 0) from render_events) as last_event,
               (select coalesce(sum(progress_percent), 0)::int from exercise_renders) as progress,
               (select count(*)::int from webhook_events w where w.applied_at is null
                  and exists (select from exercise_renders r where r.video_guid = w.video_guid)) as unapplied`;
      if (!counts) throw new Error('Postgres counted nothing');
      return counts;
    },

    programsWithFailures: async (): Promise<string[]> => {
      const rows = await sql<{ id: string }[]>`
        select distinct s.program_id as id from exercise_renders r
          join session_items i on i.render_id = r.id join sessions s on s.id = i.session_id where r.status = 'failed'`;
      return rows.map(({ id }) => id);
    },

    renders: (): Promise<RenderRow[]> => sql<RenderRow[]>`
      select id, exercise_id, recipe_hash, language, status, generation, attempts, max_attempts, video_guid, master_sha256,
             manifest_url, error_code, fair_key
        from exercise_renders order by created_at, id`,

    events: async (): Promise<EventRow[]> => {
      const rows = await sql<(Omit<EventRow, 'at' | 'id'> & { at: Date; id: string })[]>`
        select id, render_id, generation, from_status as from, to_status as to, attempt, cause, lease_token,
               error->>'code' as error_code, at
          from render_events order by id`;
      return rows.map((row) => ({ ...row, id: Number(row.id), at: row.at.getTime() }));
    },

    programs: (): Promise<ProgramRow[]> => sql<ProgramRow[]>`
      select p.id, p.status, coalesce(array_agg(i.render_id) filter (where i.id is not null), '{}') as render_ids
        from programs p left join sessions s on s.program_id = p.id left join session_items i on i.session_id = s.id
       group by p.id`,

    inbox: (): Promise<InboxRow[]> => sql<InboxRow[]>`
      select video_guid, status, body, applied_at is not null as applied, outcome from webhook_events order by received_at`,

    close: () => sql.end({ timeout: 2 }),
  };
}
