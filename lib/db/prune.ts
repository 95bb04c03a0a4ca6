import { sql } from 'drizzle-orm';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';

const countOf = async (db: Executor, statement: Parameters<typeof rows>[1]) => (await rows(db, statement)).length;

/**
 * Deletes history and webhooks older than `days`, applied or given up, and keys of requests older than one, at most `limit`
 * of each; answers how many rows went.
 */
export async function pruneHistory(db: Executor, options: { days: number; limit: number }): Promise<number> {
  const before = sql`now() - ${options.days} * interval '1 day'`;
  const events = await countOf(
    db,
    sql`delete from render_events where id in (select id from render_events where at < ${before} order by at limit ${options.limit}) returning 1 as one`,
  );
  const webhooks = await countOf(
    db,
    sql`delete from webhook_events where id in (select id from webhook_events where received_at < ${before} order by received_at limit ${options.limit}) returning 1 as one`,
  );
  const keys = await countOf(
    db,
    sql`delete from idempotency_keys where (actor, key) in
          (select actor, key from idempotency_keys where created_at < now() - interval '1 day' order by created_at limit ${options.limit}) returning 1 as one`,
  );
  return events + webhooks + keys;
}
