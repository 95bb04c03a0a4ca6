import { eq, sql } from 'drizzle-orm';
import { afterEach, beforeEach } from 'vitest';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import type { Render } from '../../../lib/db/move.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { findRender } from '../../../lib/db/renders.ts';
import { renderEvents } from '../../../lib/db/schema/index.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { type PrivateRedis, startPrivateRedis, testRedis } from '../../support/redis.ts';
import { type ScriptedMedia, startScriptedMedia } from '../../support/scripted-media.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker, type TestWorker } from '../../support/worker.ts';

export interface RedisConnection {
  redisUrl: string;
  prefix: string;
}

/** What the tests of one file start and publish, on a database of their own; everything started ends with its test. */
export function usePipeline() {
  const database = useTestDatabase();
  const opened: (() => unknown)[] = [];
  /** Has `close` called when the test is over, last opened first. */
  const own = <T>(value: T, close: () => unknown): T => {
    opened.push(close);
    return value;
  };
  // Rows of an earlier test would be swept up by this one's worker.
  beforeEach(() => database.db.execute(sql`truncate exercise_renders, webhook_events, programs cascade`));
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  const render = async (id: string): Promise<Render> => (await findRender(database.db, id))!;
  return {
    database,
    own,
    render,

    /** A part of the run's Redis that is this test's alone; never to be flushed. */
    connection: (): RedisConnection => {
      const { url, prefix } = testRedis();
      return { redisUrl: url, prefix };
    },

    /** A Redis of the test's own, to be flushed. */
    privateRedis: async (): Promise<{ redis: PrivateRedis; connection: RedisConnection }> => {
      const redis = await startPrivateRedis();
      return own({ redis, connection: { redisUrl: redis.url, prefix: 'bakehouse' } }, redis.stop);
    },

    media: async (options?: Parameters<typeof startScriptedMedia>[0]): Promise<ScriptedMedia> => {
      const media = await startScriptedMedia(options);
      return own(media, media.close);
    },

    work: (
      connection: RedisConnection,
      media: readonly Pick<ScriptedMedia, 'url' | 'token'>[],
      env: Record<string, string> = {},
    ): TestWorker => {
      const given = { mediaUrl: media.map(({ url }) => url).join(','), mediaToken: media[0]?.token ?? '' };
      const worker = startTestWorker({ databaseUrl: database.url, ...connection, ...given }, env);
      return own(worker, worker.stop);
    },

    /** Publishes a programme of so many exercises nobody has baked before, and mirrors it; answers the renders' ids. */
    publish: async (connection: RedisConnection, count: number): Promise<string[]> => {
      const { db } = database;
      const orgId = await anOrganisation(db);
      const items: { exerciseId: string }[] = [];
      for (let i = 0; i < count; i++) items.push({ exerciseId: (await anExercise(db, { orgId })).id });
      const programId = await aProgram(db, orgId, [items]);
      const { queued } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
      const queues = openQueues(connection, silentLog);
      const mirror = createMirror({ queue: queues.renders, rows: mirrorRows(db, 1_000), log: silentLog });
      await mirror.dispatch(queued);
      await queues.close();
      return queued.map(({ id }) => id);
    },

    reaches: (ids: readonly string[], status: RenderStatus, timeoutMs = 15_000): Promise<Render[]> =>
      waitFor(
        async () => {
          const renders = await Promise.all(ids.map(render));
          return renders.every((one) => one.status === status) ? renders : null;
        },
        { label: `${ids.length} renders to be ${status}`, timeoutMs },
      ),

    /** What moved a render, in order. */
    causes: async (id: string): Promise<string[]> => {
      const events = await database.db
        .select()
        .from(renderEvents)
        .where(eq(renderEvents.renderId, id))
        .orderBy(renderEvents.id);
      return events.map(({ cause }) => cause);
    },
  };
}
