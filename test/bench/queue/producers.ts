import { makeWorkerUtils } from 'graphile-worker';
import PgBoss from 'pg-boss';
import { pipelineSchema } from '../../../lib/config/pipeline.ts';
import type { Db } from '../../../lib/db/client.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import type { QueuedRender } from '../../../lib/domain/render-states.ts';
import { announceWebhook, createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { silentLog } from '../../support/log.ts';
import { type Handover, QUEUE_CONNECTIONS, type RenderJob, type Setup } from './variants.ts';

/** The edge's side of a queue. */
export interface Producer {
  /** Hands over what one publish queued, in bulk. */
  enqueue(renders: readonly QueuedRender[]): Promise<void>;
  /** Tells of one stored webhook. */
  announce(eventId: string): Promise<void>;
  close(): Promise<void>;
}

type Open = (setup: Setup, db: Db, send: (message: Handover) => void) => Promise<Producer>;

/** As deep as production's queue is by default; the rest waits in Postgres and comes in when the queue runs dry. */
const { RENDER_QUEUE_MAX_MIRRORED: maxMirrored } = pipelineSchema.parse({});

const jobOf = ({ id, generation, recipeHash }: QueuedRender): RenderJob => ({ renderId: id, generation, recipeHash });

const bakehouse: Open = async ({ redisUrl, prefix }, db) => {
  const queues = openQueues({ redisUrl, prefix }, silentLog);
  const mirror = createMirror({
    queue: queues.renders,
    rows: mirrorRows(db, maxMirrored),
    log: silentLog,
  });
  return {
    enqueue: async (renders) => {
      if (!(await mirror.dispatch(renders))) throw new Error('Redis did not take the renders in time');
    },
    announce: (eventId) => announceWebhook(queues.webhooks, eventId, silentLog),
    close: () => queues.close(),
  };
};

const pgBoss: Open = async ({ databaseUrl }) => {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    max: QUEUE_CONNECTIONS,
    migrate: false,
    supervise: false,
    schedule: false,
  });
  // What fails here fails the call, too.
  boss.on('error', () => {});
  await boss.start();
  return {
    enqueue: async (renders) => {
      await boss.insert(renders.map((render) => ({ name: 'render', data: jobOf(render) })));
    },
    announce: async (eventId) => {
      await boss.send('webhook', { eventId });
    },
    close: () => boss.stop({ graceful: false }),
  };
};

const graphileWorker: Open = async ({ databaseUrl }) => {
  const utils = await makeWorkerUtils({ connectionString: databaseUrl, maxPoolSize: QUEUE_CONNECTIONS });
  return {
    enqueue: async (renders) => {
      await utils.addJobs(renders.map((render) => ({ identifier: 'render', payload: jobOf(render) })));
    },
    announce: async (eventId) => {
      await utils.addJob('webhook', { eventId });
    },
    close: async () => {
      await utils.release();
    },
  };
};

const noQueue: Open = async (_setup, _db, send) => ({
  enqueue: async (renders) => send({ renders: renders.map(jobOf) }),
  announce: async (eventId) => send({ webhook: { eventId } }),
  close: async () => {},
});

export const PRODUCERS: Record<Setup['variant'], Open> = {
  bakehouse,
  'pg-boss': pgBoss,
  'graphile-worker': graphileWorker,
  'pg-boss ahead': pgBoss,
  'graphile-worker ahead': graphileWorker,
  'no queue': noQueue,
};
