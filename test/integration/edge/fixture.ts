import { randomUUID } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { createApp } from '../../../apps/edge/app.ts';
import type { EdgeDeps } from '../../../apps/edge/deps.ts';
import { listen } from '../../../apps/edge/listen.ts';
import { createStatuses } from '../../../apps/edge/statuses.ts';
import { createAnnouncer } from '../../../lib/announce.ts';
import { createVerifier, issueToken } from '../../../lib/auth/tokens.ts';
import { openStatusCache } from '../../../lib/cache/status-cache.ts';
import { type Api, createApi } from '../../../lib/client/client.ts';
import { loadEdgeConfig } from '../../../lib/config/edge.ts';
import type { Env } from '../../../lib/config/env.ts';
import { type Db, openDatabase } from '../../../lib/db/client.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { exerciseRenders, organisations, sessionItems, sessions } from '../../../lib/db/schema/index.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import type { Role } from '../../../lib/domain/roles.ts';
import { createFleet } from '../../../lib/media/fleet.ts';
import { createRegistry } from '../../../lib/metrics.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { aProgram } from '../../support/clinic.ts';
import { createTestDatabase } from '../../support/database.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';

const JWT_SECRET = 'a-secret-for-tests-that-is-long-enough';
export const READ_ONLY_KEY = 'read-only-key-of-the-test-library';
export const OPS_PASSWORD = 'a-password-for-ops';

/** A port where nothing listens: the discard service, which no test machine runs. */
export const DEAD = '127.0.0.1:9';

export interface Caller {
  role: Role;
  sub: string;
  org?: string;
}

/** Two clinics with their people, and those who belong to none. */
export function people() {
  const [orgA, orgB] = [randomUUID(), randomUUID()];
  return {
    superadmin: { role: 'superadmin', sub: 'root' },
    ops: { role: 'ops', sub: 'ops' },
    manager: { role: 'manager', sub: 'manager-a', org: orgA },
    specialist: { role: 'specialist', sub: 'specialist-a', org: orgA },
    patient: { role: 'patient', sub: 'patient-a', org: orgA },
    otherManager: { role: 'manager', sub: 'manager-b', org: orgB },
    otherPatient: { role: 'patient', sub: 'patient-b', org: orgB },
  } as const satisfies Record<string, Caller>;
}

export const tokenFor = (caller: Caller) => issueToken({ secret: JWT_SECRET, ttlSeconds: 60, ...caller });

interface CallInit {
  as?: Caller | undefined;
  json?: unknown;
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream | undefined;
  headers?: Record<string, string>;
}

type Call = (method: string, path: string, init?: CallInit) => Promise<Response>;

export interface TestEdge {
  app: ReturnType<typeof createApp>;
  deps: EdgeDeps;
  db: Db;
  call: Call;
  /** The API as a client that keeps to its document sees it; `call` sends what no such client would. */
  api(as: Caller): Promise<Api>;
  /** Told of every statement that goes to Postgres. */
  onStatement: ((text: string) => void) | undefined;
  close(): Promise<void>;
}

export function testEnv(change: Env = {}): Env {
  const redis = testRedis();
  return {
    NODE_ENV: 'test',
    LOG_LEVEL: 'silent',
    EDGE_PORT: '0',
    METRICS_PORT: '0',
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    MEDIA_URL: `http://${DEAD}`,
    MEDIA_TOKEN: 'a-token-for-media',
    JWT_SECRET,
    OPS_PASSWORD,
    BUNNY_READ_ONLY_KEY: `an-older-key, ${READ_ONLY_KEY}`,
    BUNNY_CDN_URL: 'https://vz-test.b-cdn.net',
    ...change,
  };
}

/** The whole app over a database and queues of its own; `change` replaces variables of its environment. */
export async function startEdge(change: Env = {}, replace: Partial<EdgeDeps> = {}): Promise<TestEdge> {
  const testDatabase = await createTestDatabase();
  const config = loadEdgeConfig(testEnv({ DATABASE_URL: testDatabase.url, ...change }));
  const watch: Pick<TestEdge, 'onStatement'> = { onStatement: undefined };
  const database = openDatabase(config.DATABASE_URL, { max: 4, onStatement: (text) => watch.onStatement?.(text) });
  const queues = openQueues({ redisUrl: config.REDIS_URL, prefix: config.REDIS_PREFIX }, silentLog);
  const cache = openStatusCache({ redisUrl: config.REDIS_URL, prefix: config.REDIS_PREFIX, log: silentLog });
  const deps: EdgeDeps = {
    config,
    database,
    queues,
    mirror: createMirror({
      queue: queues.renders,
      rows: mirrorRows(database.db, config.RENDER_QUEUE_MAX_MIRRORED),
      log: silentLog,
    }),
    media: createFleet({ targets: config.MEDIA_URL, token: config.MEDIA_TOKEN }),
    verify: createVerifier({ secret: config.JWT_SECRET }),
    registry: createRegistry('edge'),
    log: silentLog,
    statuses: createStatuses(database.db, cache, createAnnouncer(database.db, cache, silentLog)),
    stopping: new AbortController().signal,
    ...replace,
  };
  const app = createApp(deps);
  return Object.assign(watch, {
    app,
    deps,
    db: database.db,
    call: callBy((path, init) => app.request(path, init)),
    api: async (as) => createApi('http://edge.test', await tokenFor(as), { fetch: (request) => app.fetch(request) }),
    async close() {
      cache.close();
      await queues.close();
      await database.close();
      await testDatabase.drop();
    },
  } satisfies Omit<TestEdge, 'onStatement'>);
}

const callBy =
  (ask: (path: string, init: RequestInit) => Response | Promise<Response>): Call =>
  async (method, path, { as, json, body, headers } = {}) =>
    ask(path, {
      method,
      headers: {
        ...(as && { authorization: `Bearer ${await tokenFor(as)}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json !== undefined ? { body: JSON.stringify(json) } : body !== undefined && { body, duplex: 'half' }),
    });

/** The edge as its process serves it: on a socket, with what answers before the app. */
export async function serve({ app }: TestEdge) {
  const { url, close } = await listen(app, { host: '127.0.0.1', port: 0 });
  return { url, call: callBy((path, init) => fetch(`${url}${path}`, init)), close: () => close(0) };
}

/** The problem that an answer must be, with its status. */
export async function problemOf(response: Response) {
  const body = (await response.json()) as {
    code: string;
    status: number;
    detail: string;
    errors?: { path: string; message: string; code?: string }[];
  };
  return { contentType: response.headers.get('content-type'), httpStatus: response.status, ...body };
}

/** What a row needs to be in each state; the database's checks see to the rest. */
const STATES: Record<RenderStatus, Partial<typeof exerciseRenders.$inferInsert>> = {
  pending: {},
  rendering: {
    leaseToken: randomUUID(),
    leaseExpiresAt: new Date(Date.now() + 60_000),
    attempts: 1,
    progressStage: 'segments',
    progressPercent: 40,
  },
  transcoding: {
    masterSha256: 'b'.repeat(64),
    videoGuid: 'video-1',
    manifestUrl: 'https://zone.test/manifest.json',
    transcodeDeadlineAt: new Date(Date.now() + 60_000),
  },
  ready: {
    masterSha256: 'b'.repeat(64),
    videoGuid: 'video-1',
    manifestUrl: 'https://zone.test/manifest.json',
    captionsUrl: 'https://zone.test/captions.vtt',
    posterUrl: 'https://zone.test/poster.jpg',
    baselines: [
      { name: '720p', width: 1280, height: 720, url: 'https://zone.test/720p.mp4', sha256: 'c'.repeat(64), bytes: 9 },
    ],
    durationMs: 10_000,
    readyAt: new Date(),
  },
  failed: { errorCode: 'ffmpeg_failed', errorMessage: 'The video could not be composed.' },
};

/** Puts a render into a state, as the worker would have. */
export async function moveTo(db: Db, renderId: string, status: RenderStatus): Promise<void> {
  const nothing = { leaseToken: null, leaseExpiresAt: null, errorCode: null, errorMessage: null };
  await db
    .update(exerciseRenders)
    .set({ ...nothing, ...STATES[status], status })
    .where(eq(exerciseRenders.id, renderId));
}

/** A published programme of one session; `renderIds` in the order of its items. */
export async function aPublishedProgram(db: Db, orgId: string, exerciseIds: readonly string[]) {
  await db.insert(organisations).values({ id: orgId, name: 'Physio Nord' }).onConflictDoNothing();
  // A dose each, so that two items of one exercise are two renders.
  const items = exerciseIds.map((exerciseId, position) => ({ exerciseId, dose: { reps: position + 1 } }));
  const programId = await aProgram(db, orgId, [items]);
  await publishProgram(db, { programId, orgId, by: 'specialist-a' });
  const rows = await db
    .select({ sessionId: sessions.id, renderId: sessionItems.renderId })
    .from(sessionItems)
    .innerJoin(sessions, eq(sessions.id, sessionItems.sessionId))
    .where(eq(sessions.programId, programId))
    .orderBy(sessionItems.position);
  return { programId, sessionId: rows[0]!.sessionId, renderIds: rows.map((row) => row.renderId!) };
}

/** Runs `work` and answers how many statements it sent to Postgres. */
export async function statementsOf(edge: TestEdge, work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  edge.onStatement = () => {
    count += 1;
  };
  try {
    await work();
  } finally {
    edge.onStatement = undefined;
  }
  return count;
}
