import { sql } from 'drizzle-orm';
import type { Pace, StagePace } from '../domain/eta.ts';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';

/** So many of the latest of each stage are looked at: enough for a ninth tenth, and few enough for a glance. */
const SAMPLES = 200;

/**
 * How fast the stages were lately, from the history; null where nothing has gone through them yet. One statement, over
 * the latest events only.
 */
export async function measurePace(db: Executor): Promise<Pick<Pace, 'bake' | 'transcode'> | null> {
  const since = (to: string, from: string) => sql`
    select extract(epoch from e.at - b.at) * 1000 as ms
      from (select render_id, id, at from render_events
             where to_status = ${to} and from_status = ${from} order by id desc limit ${SAMPLES}) e
      join lateral (select at from render_events b
                     where b.render_id = e.render_id and b.id < e.id and b.to_status = ${from} order by b.id desc limit 1) b on true`;
  const summary = (name: string) => sql`
    select ${name} as stage, avg(ms)::float8 as mean, percentile_cont(0.5) within group (order by ms)::float8 as p50,
           percentile_cont(0.9) within group (order by ms)::float8 as p90
      from ${sql.raw(name)}`;
  const found = await rows<{ stage: string } & { [Key in keyof StagePace]: number | null }>(
    db,
    sql`with bakes as (${since('transcoding', 'rendering')}), transcodes as (${since('ready', 'transcoding')})
        ${summary('bakes')} union all ${summary('transcodes')}`,
  );
  const paceOf = (name: string) => {
    const { mean, p50, p90 } = found.find(({ stage }) => stage === name) ?? {};
    return typeof mean === 'number' && typeof p50 === 'number' && typeof p90 === 'number' ? { mean, p50, p90 } : null;
  };
  const [bake, transcode] = [paceOf('bakes'), paceOf('transcodes')];
  return bake && transcode ? { bake, transcode } : null;
}
