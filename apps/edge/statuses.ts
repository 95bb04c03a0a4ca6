import type { Announcer } from '../../lib/announce.ts';
import type { StatusCache } from '../../lib/cache/status-cache.ts';
import type { Db } from '../../lib/db/client.ts';
import { measurePace } from '../../lib/db/pace.ts';
import { maySee, readStatus } from '../../lib/db/readiness.ts';
import type { Viewer } from '../../lib/db/viewer.ts';
import { estimate, type Pace } from '../../lib/domain/eta.ts';
import { createMemory, type Memory } from '../../lib/memory.ts';

/** How programmes stand, for any number of those who ask at once. */
export interface Statuses {
  /** The readiness object as JSON text; null where there is no such programme for this viewer. */
  read(programId: string, viewer: Viewer): Promise<string | null>;
  /** Answers the same at each call, from what this process remembers, and asks anew in time; undefined where it would have to ask first. */
  lookAt(programId: string, viewer: Viewer): () => string | undefined;
  /** Calls back when a programme may look different; answers how to stop that. */
  onChange(programId: string, listener: () => void): () => void;
  changed: Announcer['changed'];
  /** What the pipeline does per slot, and how many slots there are; null where too little has been made yet. */
  pace(): Promise<Pace | null>;
}

/** A viewer who has lost sight of a programme sees it so much longer at most. */
const SIGHT_MS = 500;
/** Viewers of one programme whose sight is remembered, and programmes; those of a programme are let go together. */
const MAX_VIEWERS = 1_000;
const MAX_PROGRAMMES = 10_000;
const VIEWERS_MS = 60_000;
/** The history of hundreds of renders does not change faster. */
const PACE_MS = 15_000;
/** Times of an estimate are rounded up to this, so that it changes when it is another, not at each look. */
const ETA_STEP_MS = 10_000;

export function createStatuses(db: Db, cache: StatusCache, announcer: Announcer): Statuses {
  /** By programme, then by viewer. */
  const sights = createMemory<Memory<boolean>>({ ms: VIEWERS_MS, max: MAX_PROGRAMMES });
  cache.onAnyRing((programId) => sights.forget(programId));
  const paces = createMemory<Pace | null>({ ms: PACE_MS, max: 1, keep: (found) => found !== null });

  const pace = () =>
    paces.get('pace', async () => {
      const [stages, slots] = await Promise.all([measurePace(db), cache.slots()]);
      return stages && { ...stages, slots: Math.max(1, slots ?? 1) };
    });

  const compute = async (programId: string): Promise<string | null> => {
    const found = await readStatus(db, programId);
    if (!found) return null;
    const { readiness, unfinished } = found;
    const known = unfinished.length > 0 && readiness.status === 'preparing' ? await pace() : null;
    const eta = known && toTimes(estimate(unfinished, known), Date.now());
    return JSON.stringify({ ...readiness, eta });
  };

  return {
    read: async (programId, viewer) => {
      const viewers = await sights.get(programId, async () => createMemory({ ms: SIGHT_MS, max: MAX_VIEWERS }));
      if (!(await viewers.get(sightOf(viewer), () => maySee(db, programId, viewer)))) return null;
      return cache.read(programId, () => compute(programId));
    },
    lookAt: (programId, viewer) => {
      const sight = sightOf(viewer);
      const seeAgain = () => maySee(db, programId, viewer);
      const computeAgain = () => compute(programId);
      return () =>
        sights.peek(programId)?.peek(sight, seeAgain) === true ? cache.peek(programId, computeAgain) : undefined;
    },
    onChange: (programId, listener) => cache.onRing(programId, listener),
    changed: announcer.changed,
    pace,
  };
}

const sightOf = ({ orgId, patientId }: Viewer) => JSON.stringify([orgId, patientId]);

function toTimes({ likelyMs, latestMs }: { likelyMs: number; latestMs: number }, now: number) {
  const at = (ms: number) => new Date(Math.ceil((now + ms) / ETA_STEP_MS) * ETA_STEP_MS).toISOString();
  return { likely: at(likelyMs), latest: at(latestMs) };
}
