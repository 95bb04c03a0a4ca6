import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { z } from 'zod';
import { nodeArgs } from '../../apps/cli/stack/app-process.ts';
import { loadMediaConfig } from '../../lib/config/media.ts';
import { calm, perform, type Scene } from './actions.ts';
import { openBunny } from './bunny.ts';
import type { Evidence, Incident, Stored } from './checker/evidence.ts';
import { seedClinic } from './clinic.ts';
import { createEdges } from './edges.ts';
import { type Fleet, SLOTS } from './fleet.ts';
import { loadOf } from './load.ts';
import { playTimed, until } from './patience.ts';
import { createPublishing } from './publishing.ts';
import { EDGES, MEDIA, sayAction, scriptOf, WORKERS } from './script.ts';
import { openTruth, type Truth } from './truth.ts';

export interface ChaosOptions {
  seed: number;
  minutes: number;
  renders: number;
}

export interface ChaosRun {
  evidence: Evidence;
  /** 429s that Bunny's stand-in gave. */
  refused: number;
  /** Videos that the reconcile found to be nobody's. */
  orphans: number;
}

/** Leases, sweeps, backoffs and a bake, many times over: where nothing moves for so long, nothing will. */
const STILL_MS = 120_000;
const SETTLE_MS = 15 * 60_000;
/** At rest nothing is about to be named by a row: what no row names by now is an orphan. */
const RECONCILE_GRACE_MS = 1_000;

/**
 * Plays the seed's load and the seed's script against the fleet, lets it come to rest, publishes once more what failed,
 * reconciles, and gathers what all of that left behind. Says what it does through `say`.
 */
export async function runChaos(
  options: ChaosOptions,
  given: { fleet: Fleet; signal: AbortSignal; say: (text: string) => void },
): Promise<ChaosRun> {
  const { seed, minutes, renders } = options;
  const { fleet, signal, say } = given;
  const load = loadOf(seed, minutes, renders);
  const script = scriptOf(seed, minutes);
  const edges = createEdges(fleet.edgeUrls, signal);
  const truth = openTruth(fleet.services.databaseUrl);
  const watching = new AbortController();
  try {
    const clinic = await seedClinic(edges, { jwtSecret: fleet.secrets.jwtSecret, dir: `${fleet.dataDir}/films` });
    say(`${load.recipes.length} recipes in ${load.steps.length} steps, ${script.length} things that go wrong`);

    const scene: Scene = { fleet, truth, signal };
    const incidents: Incident[] = [];
    const publishing = createPublishing(edges, clinic, load, signal);
    const startedAt = Date.now();
    const watched = publishing.watch(AbortSignal.any([signal, watching.signal]));
    await Promise.all([
      publishing.play(startedAt),
      playTimed(script, {
        startedAt,
        signal,
        play: async (action) => {
          const incident = await perform(action, scene);
          incidents.push(incident);
          const note = incident.note ? ` (${incident.note})` : '';
          say(`${seconds(incident.from - startedAt)}  ${sayAction(action)}${incident.struck ? '' : ', missed'}${note}`);
        },
      }),
    ]);
    await calm(scene, [...EDGES, ...WORKERS, ...MEDIA]);
    say(`${seconds(Date.now() - startedAt)}  all faults taken back`);
    await settle(truth, signal);
    for (const programId of await truth.programsWithFailures()) {
      say(`publishing programme ${programId} again, of which a render failed`);
      await publishing.publishAgain(programId);
    }
    await settle(truth, signal);
    say(`${seconds(Date.now() - startedAt)}  at rest, reconciling`);
    watching.abort();
    await watched;
    signal.throwIfAborted();

    const { answers, polls } = publishing;
    return await gather(fleet, truth, { recipes: renders, answers, polls, incidents });
  } finally {
    watching.abort();
    await truth.close();
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1).padStart(6)} s`;

/**
 * Waits until every render has come to an end and every webhook of theirs is applied, or nothing moves any more: what is
 * left then is found by the checks.
 */
async function settle(truth: Truth, signal: AbortSignal): Promise<void> {
  let seen = '';
  let movedAt = performance.now();
  await until(
    async () => {
      const pulse = await truth.pulse();
      if (pulse.unfinished + pulse.unapplied === 0) return true;
      if (JSON.stringify(pulse) !== seen) movedAt = performance.now();
      seen = JSON.stringify(pulse);
      return performance.now() - movedAt > STILL_MS ? true : null;
    },
    { timeoutMs: SETTLE_MS, everyMs: 250, signal },
  );
}

async function gather(
  fleet: Fleet,
  truth: Truth,
  seen: Pick<Evidence, 'recipes' | 'answers' | 'polls' | 'incidents'>,
): Promise<ChaosRun> {
  const bunny = openBunny(fleet);
  const before = await bunny.videos();
  await delay(RECONCILE_GRACE_MS);
  const orphans = await reconcile(fleet);
  const renders = await truth.renders();
  const stored = new Map<string, Stored>();
  for (const { id, status, recipeHash } of renders)
    if (status === 'ready') stored.set(id, await bunny.stored(recipeHash));
  const { deliveries, refused } = await bunny.journal();
  const evidence: Evidence = {
    ...seen,
    titlePrefix: loadMediaConfig(fleet.mediaEnv).BUNNY_TITLE_PREFIX,
    programs: await truth.programs(),
    renders,
    events: await truth.events(),
    inbox: await truth.inbox(),
    deliveries,
    videos: { before, after: await bunny.videos() },
    stored,
    slots: SLOTS,
  };
  return { evidence, refused, orphans };
}

const reconcileReport = z.looseObject({ deleted: z.int() });

/** As an operator does it, with the command; answers how many videos it deleted. Throws where it could not do all. */
async function reconcile(fleet: Fleet): Promise<number> {
  const args = ['reconcile', '--json', '--grace', String(RECONCILE_GRACE_MS)];
  const { stdout } = await execa(process.execPath, [...nodeArgs('cli'), ...args], {
    env: { ...fleet.commandEnv, BAKEHOUSE_DATA_DIR: fleet.dataDir } as Record<string, string>,
    extendEnv: false,
    timeout: 60_000,
  });
  return reconcileReport.parse(JSON.parse(stdout)).deleted;
}
