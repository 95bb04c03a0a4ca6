import type { StatusBell } from './cache/status-cache.ts';
import type { Executor } from './db/client.ts';
import { tellReady } from './db/notifications.ts';
import { programsPlaying } from './db/readiness.ts';
import type { Logger } from './log.ts';

export interface Change {
  renders?: readonly string[];
  programs?: readonly string[];
}

/**
 * Says what has changed, after the commit that changed it: whoever shows a programme hears of it, and patients who asked
 * for it are told of one that is ready. Best effort: who shows it looks again in time, and a duty tells the patients.
 */
export interface Announcer {
  /** Resolves when it is said, or could not be. Never throws. */
  changed(what: Change): Promise<void>;
  /** The same shortly, together with what else changes until then. */
  changedSoon(what: Change): void;
  /** Says what is not said yet. */
  close(): Promise<void>;
}

/** Nobody sees so short a delay; at a hundred ends a second, five of them are said at once. */
const GATHER_MS = 50;

export function createAnnouncer(db: Executor, bell: Pick<StatusBell, 'ring'>, log: Logger): Announcer {
  let renders = new Set<string>();
  let programs = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const underWay = new Set<Promise<void>>();

  const say = async (what: Required<Change>) => {
    try {
      const playing = await programsPlaying(db, what.renders);
      const all = [...new Set([...what.programs, ...playing])];
      await bell.ring(all);
      await tellReady(db, all);
    } catch (err) {
      log.debug({ err, ...what }, 'nobody was told of a change');
    }
  };
  const changed = ({ renders = [], programs = [] }: Change) => {
    const saying = say({ renders, programs }).finally(() => underWay.delete(saying));
    underWay.add(saying);
    return saying;
  };
  const sayGathered = () => {
    clearTimeout(timer);
    timer = undefined;
    const what = { renders: [...renders], programs: [...programs] };
    renders = new Set();
    programs = new Set();
    return changed(what);
  };

  return {
    changed,
    changedSoon: (what) => {
      for (const id of what.renders ?? []) renders.add(id);
      for (const id of what.programs ?? []) programs.add(id);
      timer ??= setTimeout(() => void sayGathered(), GATHER_MS);
    },
    close: async () => {
      await sayGathered();
      await Promise.all(underWay);
    },
  };
}
