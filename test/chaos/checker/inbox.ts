import type { Check, Delivery, Violation } from './evidence.ts';
import { grouped } from './grouped.ts';

const wrong = (detail: string): Violation => ({ invariant: 'inbox', detail });
const keyOf = (event: { status: number }, guid: string) => `${guid} status ${event.status}`;

/**
 * Every delivery that Bunny got a 200 for is a row of its own, also where two are the same byte for byte; one whose
 * answer was lost may be one. Forged ones got a 401 and left nothing. In the end every event is applied, but for those
 * of videos that no render names any more.
 */
export const inbox: Check = ({ deliveries, inbox: rows, renders }) => {
  const made = new Map<string, { kept: number; unknown: number }>();
  const found: Violation[] = [];
  for (const delivery of deliveries) {
    const { kept, unknown } = made.get(keyOf(delivery, delivery.guid)) ?? { kept: 0, unknown: 0 };
    const fate = fateOf(delivery);
    if (delivery.kind === 'forged' && fate === 'kept')
      found.push(wrong(`a forged delivery for ${delivery.guid} was answered ${delivery.answer}`));
    made.set(keyOf(delivery, delivery.guid), {
      kept: kept + (fate === 'kept' ? 1 : 0),
      unknown: unknown + (fate === 'unknown' ? 1 : 0),
    });
  }
  const stored = grouped(rows, (row) => keyOf(row, row.videoGuid));
  for (const [key, { kept, unknown }] of made) {
    const there = stored.get(key)?.length ?? 0;
    if (there < kept) found.push(wrong(`${key}: ${kept} deliveries were answered 200, ${there} are stored`));
    if (there > kept + unknown)
      found.push(wrong(`${key}: ${there} are stored, at most ${kept + unknown} can have been delivered`));
  }
  for (const [key, own] of stored)
    if (!made.has(key)) found.push(wrong(`${key}: ${own.length} stored, none delivered`));
  for (const row of rows) {
    const told = JSON.parse(row.body) as { VideoGuid?: unknown; Status?: unknown };
    if (told.VideoGuid !== row.videoGuid || told.Status !== row.status)
      found.push(wrong(`the body ${row.body} is not that of ${row.videoGuid} status ${row.status}`));
  }
  const named = new Set(renders.map((render) => render.videoGuid));
  for (const row of rows) {
    if (row.applied || (row.outcome === 'unknown-video' && !named.has(row.videoGuid))) continue;
    found.push(wrong(`${keyOf(row, row.videoGuid)} was never applied: ${row.outcome ?? 'not tried'}`));
  }
  return found;
};

/** A refusal stores nothing; a call that broke or a 5xx may have come after the commit. */
function fateOf({ kind, answer }: Delivery): 'kept' | 'nothing' | 'unknown' {
  if (kind === 'lost') return 'nothing';
  if (typeof answer !== 'number') return 'unknown';
  if (answer === 200) return 'kept';
  return answer >= 500 ? 'unknown' : 'nothing';
}
