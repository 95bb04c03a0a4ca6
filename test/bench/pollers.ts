import { Agent } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { eq, inArray } from 'drizzle-orm';
import { startApp } from '../../apps/cli/stack/app-process.ts';
import { createAnnouncer } from '../../lib/announce.ts';
import { issueToken } from '../../lib/auth/tokens.ts';
import { openStatusBell } from '../../lib/cache/status-cache.ts';
import { type Db, openDatabase } from '../../lib/db/client.ts';
import { migrate } from '../../lib/db/migrate.ts';
import { publishProgram } from '../../lib/db/publish.ts';
import { assignments, exerciseRenders } from '../../lib/db/schema/index.ts';
import { anExercise, anOrganisation, aProgram } from '../support/clinic.ts';
import { silentLog } from '../support/log.ts';
import { finishAsWorker, latest, over, PATIENTS, POLLERS, watchAll } from '../support/pollers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { setReady, setTranscoding } from './lib/baked.ts';
import { describeMachine } from './lib/machine.ts';
import { median, publishReport, type Row } from './lib/report.ts';
import { type BenchServices, withServices } from './lib/services.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const rounds = options.quick ? 2 : Number(options.rounds);
const EDGES = 2;
/** From the commit of the last transition until everybody knows. */
const HEARD_MS = 1_000;
const PREFIX = 'bench-pollers';
const JWT_SECRET = 'a-secret-for-the-bench-that-is-long-enough';
const UNUSED = 'not-needed-by-this-bench';
const CONDITIONS = ['with Redis', 'Redis away'] as const;

type Latest = Record<string, number>;

const machine = await describeMachine();
const patients = Array.from({ length: PATIENTS }, (_, nth) => `patient-${nth}`);

const startEdge = (services: BenchServices, redisUrl: string) =>
  startApp({
    app: 'edge',
    env: {
      ...{ PATH: process.env.PATH, NODE_ENV: 'production', EDGE_PORT: '0', JWT_SECRET },
      ...{ DATABASE_URL: services.databaseUrl, REDIS_URL: redisUrl, REDIS_PREFIX: PREFIX },
      ...{ MEDIA_URL: 'http://127.0.0.1:9', MEDIA_TOKEN: UNUSED, BUNNY_READ_ONLY_KEY: UNUSED },
      BUNNY_CDN_URL: 'https://cdn.invalid',
    },
    logDir: join(services.dir, 'logs'),
    log: silentLog,
  });

/** A programme of three videos, of which the last is still at Bunny, and ten patients who have been given it. */
async function almostReady(db: Db, orgId: string, exerciseId: string, round: number) {
  const items = [1, 2, 3].map((nth) => ({ exerciseId, dose: { reps: 3 * round + nth } }));
  const programId = await aProgram(db, orgId, [items]);
  const { queued } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
  const [last = '', ...ready] = queued.map(({ id }) => id);
  await setReady(db, inArray(exerciseRenders.id, ready));
  await setTranscoding(db, eq(exerciseRenders.id, last));
  await db.insert(assignments).values(patients.map((patientId) => ({ programId, patientId, assignedBy: 'x' })));
  return { path: `/v1/programs/${programId}/readiness`, last };
}

const found = await withServices(async (services) => {
  await migrate(services.databaseUrl);
  const redis = await startTcpProxy(services.redisUrl);
  const database = openDatabase(services.databaseUrl, { max: 4, appName: 'bench-pollers' });
  const { db } = database;
  const edges = await Promise.all(Array.from({ length: EDGES }, () => startEdge(services, redis.url)));
  const bell = openStatusBell({ redisUrl: redis.url, prefix: PREFIX, log: silentLog });
  const worker = createAnnouncer(db, bell, silentLog);
  try {
    const orgId = await anOrganisation(db);
    const { id: exerciseId } = await anExercise(db, { orgId });
    const tokens = await Promise.all(
      patients.map((sub) => issueToken({ secret: JWT_SECRET, sub, role: 'patient', org: orgId, ttlSeconds: 3_600 })),
    );
    let round = 0;
    const watch = async (before: () => Promise<void>): Promise<Latest> => {
      const { path, last } = await almostReady(db, orgId, exerciseId, round++);
      const agents: Agent[] = [];
      const asks = edges.map(({ ready }) => () => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        agents.push(agent);
        return over(String(ready.url), agent);
      });
      const watching = watchAll(asks, path, tokens);
      await watching.began;
      await before();
      const committed = await finishAsWorker(database, last, worker);
      const after = latest(await watching.all, committed);
      for (const agent of agents) agent.destroy();
      return after;
    };
    // A process that has just been started compiles what it does for the first time: that round is not measured.
    await watch(async () => {});
    const all = new Map<(typeof CONDITIONS)[number], Latest[]>();
    for (const condition of CONDITIONS) {
      const of: Latest[] = [];
      for (let nth = 0; nth < rounds; nth++) {
        of.push(await watch(condition === 'Redis away' ? redis.refuse : async () => {}));
        process.stderr.write(`${condition}: ${JSON.stringify(of.at(-1))}\n`);
      }
      all.set(condition, of);
    }
    return all;
  } finally {
    await worker.close();
    bell.close();
    await Promise.all(edges.map((edge) => edge.stop(10_000)));
    await database.close();
    await redis.close();
  }
});

const rows: Row[] = [...found].flatMap(([condition, of]) =>
  ['poll', 'wait', 'stream'].map((kind) => {
    const times = of.map((latest) => latest[kind] ?? Number.NaN);
    return { condition, kind, 'median ms': median(times), 'worst ms': Math.max(...times) };
  }),
);
const heard = (found.get('with Redis') ?? []).map((latest) => Math.max(...Object.values(latest)));
const checks = [
  {
    name: `until the last of ${POLLERS} knows, Redis being there, in ms, median of ${rounds} rounds`,
    ...{ value: median(heard), op: '<=' as const, target: HEARD_MS },
  },
];
const about = [
  `${POLLERS} devices of ${PATIENTS} patients at ${EDGES} edges: a quarter polls, a quarter listens, half of them wait. Per round, the latest of each kind.`,
];
process.exitCode = await publishReport({ bench: 'pollers', machine, about, rows, checks }, options);
