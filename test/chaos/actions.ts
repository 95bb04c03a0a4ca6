import { execa } from 'execa';
import { Redis } from 'ioredis';
import { openBunny } from './bunny.ts';
import type { Incident } from './checker/evidence.ts';
import { type Fleet, LEASE_MS } from './fleet.ts';
import { pause, until } from './patience.ts';
import { portsOf } from './ports.ts';
import type { Action, Member } from './script.ts';
import type { Truth } from './truth.ts';

/** How long a fault waits for the moment in which it hurts: a worker that holds a render. */
const MOMENT_MS = 12_000;
/** Beyond the lease: the sweep, the way through the queue, the next worker's claim, and a bake. */
const TAKEOVER_MS = LEASE_MS + 55_000;
/**
 * How long statements are held up at most: nobody takes over while one of them has the lock of the lease sweep, and
 * Postgres cannot end what is stopped.
 */
const LATE_MS = LEASE_MS + 8_000;
/** By then a process stopped by us is woken, also where this one is gone. */
const LEASH_SECONDS = 90;

/** Titles carry the first half of the recipe hash. */
const HASH_IN_TITLE = 32;

export interface Scene {
  fleet: Fleet;
  truth: Truth;
  signal: AbortSignal;
}

type Outcome = Pick<Incident, 'struck' | 'held'> & { note?: string };

const MISSED = (note: string): Outcome => ({ struck: false, held: [], note });
const STRUCK: Outcome = { struck: true, held: [] };

/** Makes one thing go wrong, and right again where it lasts; answers what came of it. Never throws. */
export async function perform(action: Action, scene: Scene): Promise<Incident> {
  const from = Date.now();
  const outcome = await strike(action, scene).catch((error: unknown) => MISSED(String(error)));
  return { action, from, until: Date.now(), ...outcome };
}

async function strike(action: Action, scene: Scene): Promise<Outcome> {
  const { fleet, signal } = scene;
  switch (action.kind) {
    case 'kill':
      return killMember(action.target, action.signal, scene);
    case 'wedge':
      return action.what === 'statements' ? holdStatements(action.target, scene) : wedge(action.target, scene);
    case 'flush':
      await flush(fleet.services.redisUrl);
      return STRUCK;
    case 'redis-kill':
      return sendSignal(fleet.services.redisPid, 'SIGKILL');
    case 'redis-down':
      await fleet.redis.refuse();
      await pause(action.forMs, signal);
      await fleet.redis.pass();
      return STRUCK;
    case 'redis-hang':
      fleet.redis.stall();
      await pause(action.forMs, signal);
      await fleet.redis.pass();
      return STRUCK;
    case 'postgres-restart':
      // postgres(1): SIGINT is the fast shutdown; SIGQUIT the immediate one, after which it has to recover.
      return sendSignal(fleet.services.postgresPid, action.mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    case 'less-media':
      await fleet.restart(action.target, { MEDIA_CONCURRENCY: '1' });
      await pause(action.forMs, signal);
      await fleet.restart(action.target);
      return STRUCK;
    case 'disk-full': {
      const disk = fleet.disks.get(action.target);
      if (!disk || !(await disk.fill(fleet.pidOf(action.target)))) return MISSED('no disk that can be filled');
      await pause(action.forMs, signal);
      await disk.empty(fleet.pidOf(action.target));
      return { ...STRUCK, note: disk.means };
    }
    case 'bunny':
      await setFaults(fleet, action.on);
      await pause(action.forMs, signal);
      await setFaults(fleet, action.off);
      return STRUCK;
  }
}

/** A worker is hit while it is at work, if it comes to work soon; others at once. */
async function killMember(target: Member, name: NodeJS.Signals, { fleet, truth, signal }: Scene): Promise<Outcome> {
  const holdings = target.startsWith('worker') ? await busy(target, truth, signal) : null;
  const outcome = sendSignal(fleet.pidOf(target), name);
  return { ...outcome, held: holdings?.map(({ id }) => id) ?? [] };
}

const busy = (worker: string, truth: Truth, signal: AbortSignal) =>
  until(
    async () => {
      const held = await truth.holdingsOf(worker);
      return held.length > 0 ? held : null;
    },
    { timeoutMs: MOMENT_MS, signal },
  );

/**
 * Stops a worker that holds a render. Media goes on with its bake, and once that is at Bunny the worker is woken, in a
 * moment in which somebody else holds the render: the first thing that it reads is that its bake is done, and before any
 * timer of its own can tell it that its lease is over, it writes so.
 */
async function wedge(target: Member, { fleet, truth, signal }: Scene): Promise<Outcome> {
  const held = await busy(target, truth, signal);
  const pid = fleet.pidOf(target);
  if (!held || pid === null) return MISSED('it held no render');
  const bunny = openBunny(fleet);
  const unleash = leash(pid);
  process.kill(pid, 'SIGSTOP');
  const moment = await until(
    async () => {
      const { heldByOthers, open } = await truth.fateOf(held);
      if (!open) return 'woken; its renders were done without it';
      if (heldByOthers.length === 0) return null;
      const baked = (await bunny.videos()).filter(({ state }) => state !== 'created');
      const isBaked = (hash: string) => baked.some(({ title }) => title.endsWith(hash.slice(0, HASH_IN_TITLE)));
      return heldByOthers.some(isBaked) ? 'woken with its bake done and its render held by another' : null;
    },
    { timeoutMs: TAKEOVER_MS, everyMs: 50, signal },
  );
  const woken = sendSignal(pid, 'SIGCONT');
  unleash();
  return { ...woken, held: held.map(({ id }) => id), note: moment ?? 'woken; nobody had taken its render over' };
}

/**
 * Holds up what a worker has to say to Postgres, from the moment in which Bunny has a video for its bake: it says that it is
 * done, and that is on its way until its lease is over and somebody else holds the render. Then it arrives.
 */
async function holdStatements(target: Member, { fleet, truth, signal }: Scene): Promise<Outcome> {
  const pid = fleet.pidOf(target);
  if (pid === null || !(await busy(target, truth, signal))) return MISSED('it held no render');
  const backends = await truth.backendsAt(await portsOf(pid));
  const held = await until(
    async () => {
      const uploading = await truth.uploadsOf(target);
      return uploading.length > 0 ? uploading : null;
    },
    { timeoutMs: MOMENT_MS, everyMs: 10, signal },
  );
  if (!held || backends.length === 0) return MISSED('none of its bakes came to its upload');
  const unleash = backends.map(leash);
  for (const backend of backends) sendSignal(backend, 'SIGSTOP');
  const moment = await until(
    async () => {
      const fate = await truth.fateOf(held).catch(() => null);
      // It waits for its children before it stops, these among them.
      if (!fate) return 'let go; Postgres is being restarted';
      const { heldByOthers, open } = fate;
      if (!open) return 'let go; its renders were done without it';
      return heldByOthers.length > 0 ? 'let go with its render held by another' : null;
    },
    { timeoutMs: LATE_MS, everyMs: 50, signal },
  );
  for (const backend of backends) sendSignal(backend, 'SIGCONT');
  for (const letGo of unleash) letGo();
  return { ...STRUCK, held: held.map(({ id }) => id), note: moment ?? 'let go; nobody had taken its render over' };
}

/** Wakes the process after a while, whatever becomes of this one; answers how to call that off. */
function leash(pid: number): () => void {
  const options = { detached: true, reject: false, stdio: 'ignore' } as const;
  const shell = execa('/bin/sh', ['-c', `sleep ${LEASH_SECONDS}; kill -CONT ${pid}`], options);
  // The whole group: the shell's sleep must not outlive it.
  return () => void (shell.pid !== undefined && sendSignal(-shell.pid, 'SIGKILL'));
}

function sendSignal(pid: number | null, signal: NodeJS.Signals): Outcome {
  if (pid === null) return MISSED('it was dead already');
  try {
    process.kill(pid, signal);
    return STRUCK;
  } catch {
    return MISSED('it was dead already');
  }
}

/** Around the proxy: a Redis that the apps cannot reach can still lose everything. */
async function flush(redisUrl: string): Promise<void> {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 20, retryStrategy: () => 250 });
  redis.on('error', () => undefined);
  try {
    await redis.flushall();
  } finally {
    redis.disconnect();
  }
}

async function setFaults(fleet: Fleet, faults: unknown): Promise<void> {
  const response = await fetch(`${fleet.bunny.streamUrl}/sim/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(faults),
  });
  if (!response.ok) throw new Error(`the simulator refused ${JSON.stringify(faults)}: ${await response.text()}`);
}

/** Takes back whatever may still be wrong, and waits until every process of the fleet runs. */
export async function calm(
  { fleet, signal }: Pick<Scene, 'fleet' | 'signal'>,
  members: readonly Member[],
): Promise<void> {
  await fetch(`${fleet.bunny.streamUrl}/sim/faults`, { method: 'DELETE' });
  await fleet.redis.pass();
  for (const [member, disk] of fleet.disks) await disk.empty(fleet.pidOf(member));
  for (const member of members) await until(async () => fleet.pidOf(member), { timeoutMs: 30_000, signal });
}
