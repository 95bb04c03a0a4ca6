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

/** Out of turn, in each disturbance: as many first claims as all slots make while a lost job is found. */
const ROUNDS_PER_DISTURBANCE = 4;

/** One single render of a specialist who waited for nothing else, and who went before it. */
export interface Turn {
  renderId: string;
  fairKey: string;
  waitedMs: number;
  /** First claims by each other specialist between its publish and its own first claim. */
  overtaken: Map<string, number>;
  disturbances: Incident[];
}

/** A render as fairness sees it: when it was published, and when it was first claimed. */
interface Queued {
  id: string;
  fairKey: string;
  urgent: boolean;
  publishedAt: number;
  claimedAt: number;
}

function queued(evidence: Evidence): Queued[] {
  return histories(evidence).flatMap(({ render, events }) => {
    const published = events[0];
    const claim = events.find((event) => event.to === 'rendering');
    if (!published || !claim) return [];
    const { id, fairKey, urgent } = render;
    return [{ id, fairKey, urgent, publishedAt: published.at, claimedAt: claim.at }];
  });
}

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
          other.fairKey !== one.fairKey &&
          // What a patient waits for may go first, by design.
          !other.urgent &&
          other.claimedAt > one.publishedAt &&
          other.claimedAt < one.claimedAt,
      );
      const disturbances = evidence.incidents.filter((incident) => {
        const after = disturbsForMs(incident.action);
        return after !== null && incident.from <= one.claimedAt && incident.until + after >= one.publishedAt;
      });
      return {
        renderId: one.id,
        fairKey: one.fairKey,
        waitedMs: one.claimedAt - one.publishedAt,
        overtaken: new Map(
          [...grouped(before, (other) => other.fairKey)].map(([fairKey, claims]) => [fairKey, claims.length]),
        ),
        disturbances,
      };
    });
}

/**
 * A single render waits for at most one render of each other specialist, beside what the free slots take in the moment
 * in which it is on its way to the queue. Where the script disturbed the queue meanwhile, for a few rounds more.
 */
export const fair: Check = (evidence) =>
  turnsOf(evidence).flatMap(({ renderId, fairKey, overtaken, disturbances }) => {
    const ahead = [...overtaken.values()].reduce((sum, claims) => sum + claims, 0);
    const allowed = overtaken.size + evidence.slots * (1 + ROUNDS_PER_DISTURBANCE * disturbances.length);
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
