import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { inArray } from 'drizzle-orm';
import { execa } from 'execa';
import { startApp } from '../../../apps/cli/stack/app-process.ts';
import { issueToken } from '../../../lib/auth/tokens.ts';
import { openDatabase } from '../../../lib/db/client.ts';
import { migrate } from '../../../lib/db/migrate.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { assignments, exerciseRenders } from '../../../lib/db/schema/index.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { setReady } from '../lib/baked.ts';
import type { BenchServices } from '../lib/services.ts';
import { type Recorded, record } from './recorded.ts';

export const ANSWERS = ['200', '304'] as const;
export type Answer = (typeof ANSWERS)[number];
export const SERVERS = ['edge', 'bare', 'bare, without headers'] as const;
export type Server = (typeof SERVERS)[number];

export interface Target {
  url: string;
  pid: number;
}

export interface Scene {
  targetOf(server: Server, answer: Answer): Target;
  /** What each connection sends with its requests. */
  headersOf(answer: Answer, connection: number): Record<string, string>;
  stop(): Promise<void>;
}

const JWT_SECRET = 'a-secret-for-the-bench-that-is-long-enough';
/** Each with a token of their own; they share the connections. */
const PATIENTS = 20;
const ITEMS = 5;
const READY = 3;
/** More than any run asks: what is measured is an answer, not a refusal. */
const NO_LIMIT = '10000000';
const UNUSED = 'not-needed-by-this-bench';

/**
 * An edge as a process of its own, with production's settings but for the limits, over a programme that is being made and
 * that twenty patients poll; and for each answer a process with one bare route that gives it again: byte for byte, and
 * once more without the headers.
 */
export async function openScene(services: BenchServices): Promise<Scene> {
  await migrate(services.databaseUrl);
  const { orgId, programId } = await aProgrammeBeingMade(services.databaseUrl);
  const edge = await startApp({
    app: 'edge',
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      EDGE_PORT: '0',
      DATABASE_URL: services.databaseUrl,
      REDIS_URL: services.redisUrl,
      MEDIA_URL: 'http://127.0.0.1:9',
      MEDIA_TOKEN: UNUSED,
      JWT_SECRET,
      BUNNY_READ_ONLY_KEY: UNUSED,
      BUNNY_CDN_URL: 'https://cdn.invalid',
      RATE_PER_TOKEN: NO_LIMIT,
      RATE_PER_ADDRESS: NO_LIMIT,
    },
    logDir: join(services.dir, 'logs'),
    log: silentLog,
  });
  const bares: Awaited<ReturnType<typeof startBare>>[] = [];
  const stop = async () => {
    await Promise.all([...bares.map((bare) => bare.stop()), edge.stop(10_000)]);
  };
  try {
    const path = `/v1/programs/${programId}/readiness`;
    const tokens = await Promise.all(
      Array.from({ length: PATIENTS }, (_, nth) =>
        issueToken({ secret: JWT_SECRET, sub: `patient-${nth}`, role: 'patient', org: orgId, ttlSeconds: 3_600 }),
      ),
    );
    const url = `${String(edge.ready.url)}${path}`;
    const authorised = (nth: number) => ({ authorization: `Bearer ${tokens[nth % PATIENTS]}` });
    const ok = await record(url, authorised(0));
    const headersOf: Scene['headersOf'] = (answer, connection) => ({
      ...authorised(connection),
      ...(answer === '304' && { 'if-none-match': ok.headers.etag ?? '' }),
    });
    const targets = new Map<string, Target>();
    for (const answer of ANSWERS) {
      const recorded = await record(url, headersOf(answer, 0));
      const type = { 'content-type': recorded.headers['content-type'] ?? 'application/json' };
      const variants = [
        ['bare', recorded],
        ['bare, without headers', { ...recorded, headers: recorded.body === null ? {} : type }],
      ] as const;
      for (const [server, variant] of variants) {
        const bare = await startBare(variant);
        bares.push(bare);
        targets.set(`${server} ${answer}`, { url: `${bare.url}${path}`, pid: bare.pid });
      }
    }
    return {
      targetOf: (server, answer) => targets.get(`${server} ${answer}`) ?? { url, pid: edge.pid ?? 0 },
      headersOf,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function aProgrammeBeingMade(databaseUrl: string): Promise<{ orgId: string; programId: string }> {
  const database = openDatabase(databaseUrl, { max: 2, appName: 'bench-readiness' });
  const { db } = database;
  try {
    const orgId = await anOrganisation(db);
    const { id: exerciseId } = await anExercise(db, { orgId });
    const items = Array.from({ length: ITEMS }, (_, nth) => ({ exerciseId, dose: { reps: nth + 1 } }));
    const programId = await aProgram(db, orgId, [items]);
    const { queued } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
    const baked = queued.slice(0, READY).map(({ id }) => id);
    await setReady(db, inArray(exerciseRenders.id, baked));
    await db.insert(assignments).values(
      Array.from({ length: PATIENTS }, (_, nth) => ({
        programId,
        patientId: `patient-${nth}`,
        assignedBy: 'specialist-1',
      })),
    );
    return { orgId, programId };
  } finally {
    await database.close();
  }
}

async function startBare(answer: Recorded) {
  const main = fileURLToPath(new URL('bare-main.ts', import.meta.url));
  const child = execa(process.execPath, ['--import', 'tsx', main], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ANSWER: JSON.stringify(answer) },
    extendEnv: false,
    reject: false,
  });
  const line = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  const outcome = await Promise.race([line, child]);
  if (typeof outcome !== 'string') throw new Error(`the bare route ended with ${outcome.exitCode}:\n${outcome.stderr}`);
  return {
    url: outcome,
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill('SIGTERM');
      await child;
    },
  };
}
