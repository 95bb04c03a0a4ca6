import { eq, sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cancelCommand } from '../../../apps/cli/commands/cancel.ts';
import { retryCommand } from '../../../apps/cli/commands/retry.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { findRender } from '../../../lib/db/renders.ts';
import { notifications, renderEvents } from '../../../lib/db/schema/index.ts';
import { historyViolations } from '../../../lib/domain/history.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues, type Queues } from '../../../lib/queue/queues.ts';
import { runCommand } from '../../support/cli.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { progressLine, type ScriptedMedia, startScriptedMedia } from '../../support/scripted-media.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker, type TestWorker } from '../../support/worker.ts';

const database = useTestDatabase();
let media: ScriptedMedia;
let queues: Queues;
let connection: { redisUrl: string; prefix: string };
let worker: TestWorker | undefined;

beforeEach(async () => {
  await database.db.execute(sql`truncate exercise_renders, notifications, programs cascade`);
  media = await startScriptedMedia();
  const { url, prefix } = testRedis();
  connection = { redisUrl: url, prefix };
  queues = openQueues(connection, silentLog);
});

afterEach(async () => {
  await worker?.stop();
  worker = undefined;
  await queues.close();
  await media.close();
});

const work = (env: Record<string, string> = {}) => {
  worker = startTestWorker(
    { databaseUrl: database.url, ...connection, mediaUrl: media.url, mediaToken: media.token },
    env,
  );
};

async function publishOne(): Promise<string> {
  const { db } = database;
  const orgId = await anOrganisation(db);
  const exercise = await anExercise(db, { orgId });
  const programId = await aProgram(db, orgId, [[{ exerciseId: exercise.id }]]);
  const { queued } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
  return queued[0]!.id;
}

const render = async (id: string) => (await findRender(database.db, id))!;
const history = (id: string) =>
  database.db.select().from(renderEvents).where(eq(renderEvents.renderId, id)).orderBy(renderEvents.id);
const causes = async (id: string) => (await history(id)).map(({ cause }) => cause);
const cancel = (...args: string[]) => runCommand(cancelCommand(), args, { DATABASE_URL: database.url });
const retry = (...args: string[]) => runCommand(retryCommand(), args, { DATABASE_URL: database.url });

describe('a cancelled render', () => {
  it('that is being baked stops within five seconds with the usual lease, and stays cancelled', async () => {
    media.script = (call) => call.line(progressLine(1));
    work({ RENDER_LEASE_MS: '60000', RENDER_SILENCE_MS: '120000' });
    const id = await publishOne();
    const call = await waitFor(() => media.calls[0], { label: 'the compose call' });
    await waitFor(async () => (await render(id)).progressPercent === 1, { label: 'a first heartbeat' });
    const since = performance.now();
    expect(await cancel(id)).toMatchObject({ exitCode: 0 });
    await call.gone;
    const tookMs = performance.now() - since;
    expect(tookMs).toBeLessThan(6_000);
    // The worker settles what it holds before it stops.
    await worker?.stop();
    expect(await render(id)).toMatchObject({ status: 'failed', errorCode: 'cancelled', generation: 0, attempts: 1 });
    expect(await causes(id)).toEqual(['published', 'claim', 'bakehouse cancel']);
    expect(await database.db.select().from(notifications)).toEqual([]);
    expect(media.calls).toHaveLength(1);
  });

  it('that is still queued is a job with nothing to do', async () => {
    const id = await publishOne();
    const mirror = createMirror({ queue: queues.renders, rows: mirrorRows(database.db, 100), log: silentLog });
    expect(await mirror.dispatch([{ id }])).toBe(true);
    const { recipeHash } = await render(id);
    await cancel(id);
    work();
    const outcome = await waitFor(async () => (await queues.renders.getJob(recipeHash))?.returnvalue, {
      label: 'the job to complete',
    });
    expect(outcome).toBe('not claimable: failed');
    expect(media.calls).toEqual([]);
    expect(await causes(id)).toEqual(['published', 'bakehouse cancel']);
  });

  it('is made after all when somebody retries it, while the first bake has not noticed yet', async () => {
    media.script = (call, nth) => {
      if (nth > 1) return;
      call.line(progressLine(1));
    };
    work();
    const id = await publishOne();
    const first = await waitFor(() => media.calls[0], { label: 'the first bake' });
    await cancel(id);
    await retry(id);
    await first.gone;
    await waitFor(() => media.calls[1], { label: 'the second bake' });
    expect(await render(id)).toMatchObject({ status: 'rendering', generation: 1, attempts: 1 });
    const row = await render(id);
    expect(historyViolations(await history(id), { whole: true, row })).toEqual([]);
  });
});

describe('a retry', () => {
  it('of what waits for a later attempt is baked at once, whatever the queue was told of the wait', async () => {
    media.script = (call, nth) => {
      if (nth > 1) return call.line(progressLine(1));
      call.line({ type: 'error', code: 'ffmpeg_failed', message: 'It could not be composed.', retryable: true });
      call.end();
    };
    work({ RENDER_BACKOFF_MS: '3600000', RENDER_BACKOFF_MAX_MS: '3600000' });
    const id = await publishOne();
    const { recipeHash } = await waitFor(async () => ((await render(id)).notBefore ? render(id) : null), {
      label: 'the render to wait',
    });
    await waitFor(async () => (await queues.renders.getJobState(recipeHash)) === 'delayed', {
      label: 'its job to wait',
    });
    await retry(id);
    await waitFor(() => media.calls[1], { label: 'the second bake' });
    expect(await render(id)).toMatchObject({ status: 'rendering', generation: 0, attempts: 2 });
  });
});
