import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { Db } from '../../../lib/db/client.ts';
import { rows } from '../../../lib/db/rows.ts';

/** When one of these renders (all, by default) was first claimed after `since`; both by the clock of this machine. */
export async function claimAfter(db: Db, since: number, renderIds?: readonly string[]): Promise<number | null> {
  const among = renderIds ? sql`and render_id = any(${sql.param(renderIds)}::uuid[])` : sql``;
  const [first] = await rows<{ ms: string | null }>(
    db,
    sql`select extract(epoch from min(at)) * 1000 as ms from render_events
         where cause = 'claim' and at > ${new Date(since).toISOString()} ${among}`,
  );
  return first?.ms ? Math.round(Number(first.ms)) : null;
}

/** Looks every `everyMs` until `look` answers something else than null, and resolves to that. */
export async function watch<T>(
  label: string,
  { timeoutMs, everyMs = 20 }: { timeoutMs: number; everyMs?: number },
  look: () => Promise<T | null>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    // What is asked may itself be restarting.
    const seen = await look().catch(() => null);
    if (seen !== null) return seen;
    if (performance.now() > deadline) throw new Error(`${label}: not within ${timeoutMs} ms`);
    await delay(everyMs);
  }
}
