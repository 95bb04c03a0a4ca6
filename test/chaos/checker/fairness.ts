import type { Action } from '../script.ts';
import { type Check, type Evidence, histories, type Incident } from './evidence.ts';
import { grouped } from './grouped.ts';

/** How long something goes on to disturb the order of the queue after it is over; null where it never does. */
function disturbsForMs({ kind, ...action }: Action): number | null {
  switch (kind) {
    // Jobs are gone until the sweep adds them again.
    case 'flush':
    case 'redis-kill':
    case 'redis-down':
    case 'redis-hang':
      return 5_000;
    case 'postgres-restart':
      return 2_000;
    // A job that a dead process held, or never got to mirror, waits until the queue or the sweep notices.
    case 'wedge':
      return 5_000;
    case 'kill':
      return 'target' in action && String(action.target).startsWith('media') ? null : 5_000;
    // They end attempts, which changes nothing about who is claimed for the first time.
    case 'less-media':
    case 'disk-full':
    case 'bunny':
      return null;
  }
}

/** One single render of a specialist who waited for nothing else, and who went before it. */
export interface Turn {
  renderId: string;
  fairKey: string;
  waitedMs: number;
  /** First claims by each other specialist between its publish and its own first claim, in undisturbed moments. */
  overtaken: Map<string, number>;
  /** Such claims in moments in which the script had disturbed the queue. */
  excused: number;
}

/** A render as fairness sees it: when it was published, and when it was first claimed. */
interface Queued {
  id: string;
  fairKey: string;
  publishedAt: number;
  claimedAt: number;
}

function queued(evidence: Evidence): Queued[] {
  return histories(evidence).flatMap(({ render, events }) => {
    const published = events[0];
    const claim = events.find((event) => event.to === 'rendering');
    if (!published || !claim) return [];
    return [{ id: render.id, fairKey: render.fairKey, publishedAt: published.at, claimedAt: claim.at }];
  });
}

/** Whether the script had the queue in disorder at that time, or it had not yet had the time to mend. */
const disturbed = (incidents: readonly Incident[], at: number) =>
  incidents.some(({ action, struck, from, until }) => {
    const after = disturbsForMs(action);
    return struck && after !== null && from <= at && at <= until + after;
  });

/** Every single render that was published by somebody who had nothing else waiting. */
export function turnsOf(evidence: Evidence): Turn[] {
  const all = queued(evidence);
  return all
    .filter((one) => {
      const waiting = (other: Queued) => other.publishedAt <= one.publishedAt && other.claimedAt > one.publishedAt;
      return all.every((other) => other === one || other.fairKey !== one.fairKey || !waiting(other));
    })
    .map((one) => {
      const before = all.filter(
        (other) =>
          other.fairKey !== one.fairKey && other.claimedAt > one.publishedAt && other.claimedAt < one.claimedAt,
      );
      const counted = before.filter((other) => !disturbed(evidence.incidents, other.claimedAt));
      return {
        renderId: one.id,
        fairKey: one.fairKey,
        waitedMs: one.claimedAt - one.publishedAt,
        overtaken: new Map(
          [...grouped(counted, (other) => other.fairKey)].map(([key, claims]) => [key, claims.length]),
        ),
        excused: before.length - counted.length,
      };
    });
}

/**
 * A single render waits for at most one render of each other specialist, urgent or not, beside what the workers have
 * taken from the queue already and what free slots take while it is on its way there. Claims do not count in the moments in which the script had just emptied the
 * queue or taken it away.
 */
export const fair: Check = (evidence) =>
  turnsOf(evidence).flatMap(({ renderId, fairKey, overtaken }) => {
    const ahead = [...overtaken.values()].reduce((sum, claims) => sum + claims, 0);
    const allowed = overtaken.size + evidence.slots;
    if (ahead <= allowed) return [];
    const who = [...overtaken].map(([key, claims]) => `${claims} of ${key}`).join(', ');
    return [
      {
        invariant: 'fair',
        renderId,
        detail: `the only render of ${fairKey} waited for ${who}; ${allowed} are allowed`,
      },
    ];
  });
