import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startApp } from '../../../apps/cli/stack/app-process.ts';
import { type Database, openDatabase } from '../../../lib/db/client.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { migrate } from '../../../lib/db/migrate.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { doneLine, startScriptedMedia, videoLine } from '../../support/scripted-media.ts';
import { type BenchServices, withServices } from '../lib/services.ts';
import { claimAfter, watch } from './events.ts';

const BAKE_MS = 200;
const WORKERS = 2;

/** Two workers with a backlog, over servers that can be killed. */
export interface ServersScene {
  /** SIGKILLs a server, which is started again at once; answers the milliseconds until the next claim. */
  kill(server: 'Postgres' | 'Redis', timeoutMs: number): Promise<number>;
}

/**
 * Runs `work` beside two worker processes that have enough to do. Media is a script here that answers after a moment,
 * so that some twenty renders are claimed a second, and a gap between two claims is the servers' and not a bake's.
 */
export function withServersScene(
  env: Record<string, string>,
  renders: number,
  work: (scene: ServersScene) => Promise<void>,
): Promise<void> {
  return withServices(async (services) => {
    await migrate(services.databaseUrl);
    const database = openDatabase(services.databaseUrl, { max: 4, appName: 'bench-recovery' });
    const media = await startScriptedMedia();
    media.script = (call) => {
      void delay(BAKE_MS).then(() => {
        call.line(videoLine(call.request));
        call.line(doneLine(call.request));
        call.end();
      });
    };
    const workers = await Promise.all(
      Array.from({ length: WORKERS }, (_, nth) =>
        startApp({
          app: 'worker',
          env: {
            ...env,
            PATH: process.env.PATH,
            LOG_LEVEL: 'warn',
            WORKER_NAME: `worker-${nth + 1}`,
            DATABASE_URL: services.databaseUrl,
            REDIS_URL: services.redisUrl,
            MEDIA_URL: media.url,
            MEDIA_TOKEN: media.token,
          },
          logDir: join(services.dir, `worker-${nth + 1}`),
          log: silentLog,
        }),
      ),
    );
    try {
      await publishBacklog(database, services, renders);
      await work({ kill: (server, timeoutMs) => killServer(database, services, server, timeoutMs) });
    } finally {
      await Promise.all(workers.map((worker) => worker.stop(10_000)));
      await media.close();
      await database.close();
    }
  });
}

async function killServer(
  { db }: Database,
  services: BenchServices,
  server: 'Postgres' | 'Redis',
  timeoutMs: number,
): Promise<number> {
  const pidOf = () => (server === 'Postgres' ? services.postgresPid : services.redisPid);
  await watch('claims', { timeoutMs }, () => claimAfter(db, Date.now() - 1_000));
  const pid = pidOf();
  if (pid === null) throw new Error(`${server} is not running`);
  const killedAt = Date.now();
  // For Postgres SIGQUIT, its own word for dying at once: SIGKILL of the first process alone would leave the others.
  process.kill(pid, server === 'Postgres' ? 'SIGQUIT' : 'SIGKILL');
  // A claim that was on its way in that very moment does not count: the server must have died and come back.
  const backAt = await watch(`${server} again`, { timeoutMs, everyMs: 5 }, async () => {
    const now = pidOf();
    return now !== null && now !== pid ? Date.now() : null;
  });
  const claimedAt = await watch('the next claim', { timeoutMs }, () => claimAfter(db, backAt));
  return claimedAt - killedAt;
}

async function publishBacklog({ db }: Database, services: BenchServices, renders: number): Promise<void> {
  const { id: exerciseId } = await anExercise(db);
  const doses = Array.from({ length: renders }, (_, at) => ({
    exerciseId,
    dose: { sets: 1 + Math.floor(at / 100), reps: 1 + (at % 100) },
  }));
  const programId = await aProgram(db, await anOrganisation(db), [doses]);
  const { queued } = await publishProgram(db, { programId, orgId: null, by: 'specialist-1' });
  const queues = openQueues({ redisUrl: services.redisUrl, prefix: 'bakehouse' }, silentLog);
  try {
    const mirror = createMirror({ queue: queues.renders, rows: mirrorRows(db, renders), log: silentLog });
    if (!(await mirror.dispatch(queued))) throw new Error('Redis did not take the backlog in time');
  } finally {
    await queues.close();
  }
}
