import DataLoader from 'dataloader';
import type { Announcer } from '../../lib/announce.ts';
import type { ComputeStatus, StatusCache } from '../../lib/cache/status-cache.ts';
import type { Db } from '../../lib/db/client.ts';
import { measurePace } from '../../lib/db/pace.ts';
import { maySee, readStatus, type Sight } from '../../lib/db/readiness.ts';
import type { Viewer } from '../../lib/db/viewer.ts';
import { estimate, type Pace, type Told, tell } from '../../lib/domain/eta.ts';
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
/** Checks of sights that are asked for within this are one statement, however many ask; the first does not wait. */
const GATHER_MS = 50;
const MAX_GATHERED = 1_000;
/** The history of hundreds of renders does not change faster. */
const PACE_MS = 15_000;

export function createStatuses(db: Db, cache: StatusCache, announcer: Announcer): Statuses {
  /** By programme, then by viewer. */
  const sights = createMemory<Memory<boolean>>({ ms: VIEWERS_MS, max: MAX_PROGRAMMES });
  cache.onAnyRing((programId) => sights.forget(programId));
  const checks = gatherChecks(db);
  const paces = createMemory<Pace | null>({ ms: PACE_MS, max: 1, keep: (found) => found !== null });

  const pace = () =>
    paces.get('pace', async () => {
      const [stages, slots] = await Promise.all([measurePace(db), cache.slots()]);
      return stages && { ...stages, slots: Math.max(1, slots ?? 1) };
    });

  const computeOf =
    (programId: string): ComputeStatus =>
    async (last) => {
      const found = await readStatus(db, programId);
      if (!found) return null;
      const { readiness, unfinished } = found;
      const known = unfinished.length > 0 && readiness.status === 'preparing' ? await pace() : null;
      const told = known && tell(estimate(unfinished, known), Date.now(), last === null ? null : toldIn(last));
      const eta = told && { likely: toTime(told.likely), latest: toTime(told.latest) };
      return JSON.stringify({ ...readiness, eta });
    };

  return {
    read: async (programId, viewer) => {
      const viewers = await sights.get(programId, async () => createMemory({ ms: SIGHT_MS, max: MAX_VIEWERS }));
      if (!(await viewers.get(sightOf(viewer), () => checks.load({ programId, viewer })))) return null;
      return cache.read(programId, computeOf(programId));
    },
    lookAt: (programId, viewer) => {
      const sight = sightOf(viewer);
      const seeAgain = () => checks.load({ programId, viewer });
      const computeAgain = computeOf(programId);
      return () =>
        sights.peek(programId)?.peek(sight, seeAgain) === true ? cache.peek(programId, computeAgain) : undefined;
    },
    onChange: (programId, listener) => cache.onRing(programId, listener),
    changed: announcer.changed,
    pace,
  };
}

/**
 * Checks sights together: statements follow each other at intervals, with all that was asked for in between. What is found
 * is no older than its question, and an error of the statement is everybody's whom it was made for.
 */
function gatherChecks(db: Db): Pick<DataLoader<Sight, boolean>, 'load'> {
  let next = 0;
  return new DataLoader((asked: readonly Sight[]) => maySee(db, asked), {
    cache: false,
    maxBatchSize: MAX_GATHERED,
    batchScheduleFn: (check) => {
      const now = performance.now();
      const at = Math.max(now, next);
      next = at + GATHER_MS;
      setTimeout(check, at - now);
    },
  });
}

const sightOf = ({ orgId, patientId }: Viewer) => JSON.stringify([orgId, patientId]);

const toTime = (ms: number) => new Date(ms).toISOString();

/** The times in a readiness object of ours. */
function toldIn(text: string): Told | null {
  const { eta } = JSON.parse(text) as { eta: Record<keyof Told, string> | null };
  return eta && { likely: Date.parse(eta.likely), latest: Date.parse(eta.latest) };
}
