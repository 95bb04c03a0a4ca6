import { sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';

/**
 * True where this duty last ran longer than `periodMs` ago, over all processes; it then counts as run now. The first
 * question of all begins the first period.
 */
export async function startDutyRun(db: Executor, duty: string, periodMs: number): Promise<boolean> {
  const [run] = await rows<{ again: boolean }>(
    db,
    sql`insert into duty_runs (duty) values (${duty})
        on conflict (duty) do update set ran_at = now()
          where duty_runs.ran_at <= now() - ${periodMs} * interval '1 millisecond'
        returning xmax <> 0 as again`,
  );
  return run?.again ?? false;
}
