import { fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { count, sql } from 'drizzle-orm';
import type { Db } from '../../../lib/db/client.ts';
import { openDatabase } from '../../../lib/db/client.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { createDatabase } from '../lib/databases.ts';
import { cpuOf } from '../lib/processes.ts';
import type { BenchServices } from '../lib/services.ts';
import { tellFinished } from './bunny.ts';
import { PRODUCERS, type Producer } from './producers.ts';
import type { Handover, Setup, Variant } from './variants.ts';

const ITEMS_PER_PROGRAM = 1_000;
const RUN_DEADLINE_MS = 10 * 60_000;

export interface Figures {
  rendersPerSecond: number;
  /** User and system milliseconds per render. */
  cpuMs: { worker: number; edge: number; postgres: number; redis: number };
}

/**
 * One run: a fresh database, fresh worker processes that share the handlers between them, a warm-up, then `renders` renders from publish to ready. The
 * clock runs from before the first publish until the last row is ready.
 */
export async function runLifecycle(
  services: BenchServices,
  options: { variant: Variant; workers: number; concurrency: number; renders: number; warmUp: number },
): Promise<Figures> {
  const database = await createDatabase(services.databaseUrl);
  const setup: Setup = {
    variant: options.variant,
    databaseUrl: database.url,
    redisUrl: services.redisUrl,
    prefix: database.name,
    concurrency: Math.ceil(options.concurrency / options.workers),
  };
  const workers: Awaited<ReturnType<typeof startWorkerProcess>>[] = [];
  // One after the other: the first one's queue makes its tables.
  for (let nth = 0; nth < options.workers; nth++) workers.push(await startWorkerProcess(setup, services.dir));
  let turn = 0;
  const send = (message: Handover) => workers[turn++ % workers.length]?.send(message);
  const { db, close } = openDatabase(database.url, { max: 10, appName: 'bench-edge' });
  const producer = await PRODUCERS[options.variant](setup, db, send);
  try {
    const orgId = await anOrganisation(db);
    const warmUp = await draftPrograms(db, orgId, options.warmUp);
    const programs = await draftPrograms(db, orgId, options.renders);
    await bakeAll(db, producer, warmUp);
    await db.execute(sql`analyze`);

    const roots = {
      worker: workers.map(({ pid }) => pid),
      postgres: [services.postgresPid ?? 0],
      redis: [services.redisPid ?? 0],
    };
    const before = await cpuOf(roots);
    const edgeBefore = process.cpuUsage();
    const started = performance.now();
    await bakeAll(db, producer, programs);
    const seconds = (performance.now() - started) / 1000;
    const edge = process.cpuUsage(edgeBefore);
    const after = await cpuOf(roots);

    await expectAllReady(db, options.renders + options.warmUp);
    const perRender = (name: keyof typeof after) => (after[name] - before[name]) / options.renders;
    return {
      rendersPerSecond: options.renders / seconds,
      cpuMs: {
        worker: perRender('worker'),
        // By the process's own account: the servers and the workers are its children.
        edge: (edge.user + edge.system) / 1000 / options.renders,
        postgres: perRender('postgres'),
        redis: perRender('redis'),
      },
    };
  } finally {
    await producer.close();
    await Promise.all(workers.map((worker) => worker.stop()));
    await close();
    await database.drop();
  }
}

/** Draft programmes of up to a thousand items, no two with the same recipe. */
async function draftPrograms(db: Db, orgId: string, items: number): Promise<string[]> {
  const programs: string[] = [];
  for (let left = items; left > 0; left -= ITEMS_PER_PROGRAM) {
    const exercise = await anExercise(db);
    const doses = Array.from({ length: Math.min(left, ITEMS_PER_PROGRAM) }, (_, at) => ({
      exerciseId: exercise.id,
      dose: { sets: 1 + Math.floor(at / 100), reps: 1 + (at % 100) },
    }));
    programs.push(await aProgram(db, orgId, [doses]));
  }
  return programs;
}

/** Publishes one programme after the other, as fast as that goes, and waits until all that they need is ready. */
async function bakeAll(db: Db, producer: Producer, programs: readonly string[]): Promise<void> {
  const publishing = new AbortController();
  let expected = 0;
  const publish = async () => {
    for (const programId of programs) {
      const { queued } = await publishProgram(db, { programId, orgId: null, by: 'specialist-1' });
      expected += queued.length;
      await producer.enqueue(queued);
    }
    publishing.abort();
  };
  const done = () => (publishing.signal.aborted ? expected : Number.POSITIVE_INFINITY);
  await Promise.all([publish(), tellFinished(db, producer.announce, { expected: done, deadlineMs: RUN_DEADLINE_MS })]);
}

async function expectAllReady(db: Db, renders: number): Promise<void> {
  const found = await db
    .select({ status: exerciseRenders.status, attempts: exerciseRenders.attempts, renders: count() })
    .from(exerciseRenders)
    .groupBy(exerciseRenders.status, exerciseRenders.attempts);
  const [only] = found;
  const right = found.length === 1 && only?.status === 'ready' && only.attempts === 1 && only.renders === renders;
  if (!right) throw new Error(`not every render is ready at its first attempt: ${JSON.stringify(found)}`);
}

async function startWorkerProcess(setup: Setup, dir: string) {
  const logFile = openSync(join(dir, 'worker.log'), 'w');
  const child = fork(fileURLToPath(new URL('./worker-main.ts', import.meta.url)), [JSON.stringify(setup)], {
    execArgv: ['--import', 'tsx'],
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
    stdio: ['ignore', 'ignore', logFile, 'ipc'],
  });
  closeSync(logFile);
  const ended = once(child, 'exit');
  const outcome = await Promise.race([once(child, 'message'), ended.then(() => 'ended' as const)]);
  if (outcome === 'ended' || child.pid === undefined) throw new Error(`the worker of ${setup.variant} did not start`);
  return {
    pid: child.pid,
    send: (message: Handover) => void child.send(message),
    stop: async () => {
      child.kill('SIGTERM');
      const killer = setTimeout(() => child.kill('SIGKILL'), 30_000);
      await ended;
      clearTimeout(killer);
    },
  };
}
