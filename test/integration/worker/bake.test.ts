import { Worker } from 'bullmq';
import { eq, sql } from 'drizzle-orm';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { findRender } from '../../../lib/db/renders.ts';
import { exerciseRenders, renderEvents } from '../../../lib/db/schema/index.ts';
import { storeWebhookEvent } from '../../../lib/db/webhooks.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { announceWebhook, createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues, type Queues } from '../../../lib/queue/queues.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { startPrivateRedis, testRedis } from '../../support/redis.ts';
import {
  doneLine,
  guidOf,
  progressLine,
  type ScriptedMedia,
  startScriptedMedia,
  videoLine,
} from '../../support/scripted-media.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker, type TestWorker } from '../../support/worker.ts';

const database = useTestDatabase();
const opened: (() => Promise<unknown>)[] = [];
let media: ScriptedMedia;
let queues: Queues;
let connection: { redisUrl: string; prefix: string };

beforeEach(async () => {
  // Rows of an earlier test would be swept up by this one's worker.
  await database.db.execute(sql`truncate exercise_renders, webhook_events, programs cascade`);
  media = await startScriptedMedia();
  const { url, prefix } = testRedis();
  connection = { redisUrl: url, prefix };
  openConnection();
});

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  await media.close();
});

function openConnection() {
  queues = openQueues(connection, silentLog);
  opened.push(queues.close);
}

function work(env: Record<string, string> = {}): TestWorker {
  const worker = startTestWorker(
    { databaseUrl: database.url, ...connection, mediaUrl: media.url, mediaToken: media.token },
    env,
  );
  opened.push(worker.stop);
  return worker;
}

/** Publishes a new exercise; `mirrored` false leaves the job to the sweep, as a crash after the commit would. */
async function publishOne(mirrored = true): Promise<string> {
  const { db } = database;
  const orgId = await anOrganisation(db);
  const exercise = await anExercise(db, { orgId });
  const { queued } = await publishProgram(db, {
    programId: await aProgram(db, orgId, [[{ exerciseId: exercise.id }]]),
    orgId,
    by: 'specialist-1',
  });
  if (mirrored) {
    const mirror = createMirror({
      queue: queues.renders,
      rows: mirrorRows(db, 100),
      log: silentLog,
    });
    await mirror.dispatch(queued);
  }
  return queued[0]!.id;
}

const render = async (id: string) => (await findRender(database.db, id))!;
const reaches = (id: string, status: RenderStatus) =>
  waitFor(async () => ((await render(id)).status === status ? render(id) : null), {
    label: `the render to be ${status}`,
    timeoutMs: 15_000,
  });
const causes = async (id: string) =>
  (await database.db.select().from(renderEvents).where(eq(renderEvents.renderId, id)).orderBy(renderEvents.id)).map(
    (e) => e.cause,
  );

async function deliver(videoGuid: string, status: number, announced = true): Promise<void> {
  const { id } = await storeWebhookEvent(database.db, {
    videoGuid,
    libraryId: 1,
    status,
    body: '{}',
    verifiedBy: 'signature',
  });
  if (announced) await announceWebhook(queues.webhooks, id, silentLog);
}

const finished = { state: 'finished' as const, lengthSeconds: 10 };

describe('a published render', () => {
  it('is baked once, waits for Bunny and is ready when Bunny says so', async () => {
    work();
    const id = await publishOne();
    const baked = await reaches(id, 'transcoding');
    expect(baked).toMatchObject({
      videoGuid: `video-${id}`,
      masterSha256: 'b'.repeat(64),
      durationMs: 10_000,
      attempts: 1,
      leaseToken: null,
    });
    media.videos.set(baked.videoGuid!, finished);
    await deliver(baked.videoGuid!, 3);
    await reaches(id, 'ready');
    expect(media.calls).toHaveLength(1);
    expect(media.calls[0]?.request).toMatchObject({ renderId: id, recipeHash: baked.recipeHash, recipe: baked.recipe });
    expect(await causes(id)).toEqual(['published', 'claim', 'uploaded', 'webhook']);
  });

  it('whose job was never added, or was lost with Redis, is found by the sweep', async () => {
    const redis = await startPrivateRedis();
    opened.push(redis.stop);
    connection = { redisUrl: redis.url, prefix: 'flushed' };
    openConnection();
    const [unmirrored, flushed] = [await publishOne(false), await publishOne()];
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
    work();
    await reaches(unmirrored, 'transcoding');
    await reaches(flushed, 'transcoding');
    expect(media.calls).toHaveLength(2);
  });

  it('shows its progress while it is baked', async () => {
    media.script = (call) => {
      call.line(progressLine(42));
    };
    work();
    const id = await publishOne();
    const row = await waitFor(async () => ((await render(id)).progressPercent === 42 ? render(id) : null), {
      label: 'the progress on the row',
    });
    expect(row).toMatchObject({ status: 'rendering', progressStage: 'segments' });
  });

  it('has its video on the row before the bake has ended', async () => {
    media.script = (call) => call.line(videoLine(call.request));
    work();
    const id = await publishOne();
    await waitFor(async () => (await render(id)).videoGuid, { label: 'the guid on the row' });
    expect(await render(id)).toMatchObject({ status: 'rendering', videoGuid: guidOf({ renderId: id }) });
  });
});

describe('a bake that cannot go on', () => {
  it('because media is full is handed back and tried again, without costing an attempt', async () => {
    media.script = (call, nth) => {
      if (nth <= 2) return call.refuse(429, 'media_busy', { 'retry-after': '0' });
      call.line(doneLine(call.request));
      call.end();
    };
    work();
    const id = await publishOne();
    expect(await reaches(id, 'transcoding')).toMatchObject({ attempts: 1 });
    expect(media.calls).toHaveLength(3);
    expect(await causes(id)).toEqual(['published', 'claim', 'media_busy', 'claim', 'media_busy', 'claim', 'uploaded']);
  });

  it.each([
    [
      'an error that may pass',
      (call: ScriptedMedia['calls'][number]) => {
        call.line({
          type: 'error',
          code: 'ffmpeg_failed',
          message: 'The video could not be composed.',
          retryable: true,
          detail: 'stderr tail',
        });
        call.end();
      },
      'ffmpeg_failed',
    ],
    ['a stream that ends without a word', (call: ScriptedMedia['calls'][number]) => call.end(), 'media_protocol'],
    [
      'a connection that breaks',
      (call: ScriptedMedia['calls'][number]) => {
        call.line(progressLine(5));
        setImmediate(call.cut);
      },
      'media_unavailable',
    ],
    ['silence', (call: ScriptedMedia['calls'][number]) => call.line(progressLine(5)), 'media_silent'],
  ])('because of %s is tried again, and the attempt counts', async (_, fail, code) => {
    media.script = (call, nth) => {
      if (nth === 1) return fail(call);
      call.line(doneLine(call.request));
      call.end();
    };
    work({ RENDER_SILENCE_MS: '500' });
    const id = await publishOne();
    expect(await reaches(id, 'transcoding')).toMatchObject({ attempts: 2 });
    const events = await database.db
      .select()
      .from(renderEvents)
      .where(eq(renderEvents.renderId, id))
      .orderBy(renderEvents.id);
    expect(events.map((e) => e.cause)).toEqual(['published', 'claim', 'retry', 'claim', 'uploaded']);
    expect(events[2]?.error?.code).toBe(code);
  });

  it('because media is not there, or refuses our token, waits for it without costing an attempt', async () => {
    const { url } = media;
    await media.close();
    const worker = work();
    const id = await publishOne();
    await waitFor(() => worker.health().body.media === 'no media', { label: 'media to be missed' });
    await waitFor(() => queues.renders.getActiveCount(), { label: 'the job to wait' });
    media = await startScriptedMedia({ port: Number(new URL(url).port), token: 'another-token-than-ours' });
    await waitFor(() => media.refused > 0, { label: 'our token to be refused', timeoutMs: 15_000 });
    expect(await render(id)).toMatchObject({ status: 'pending', attempts: 0 });
    expect(worker.health()).toEqual({ ok: true, body: { status: 'ok', media: 'no media' } });
    await media.close();
    media = await startScriptedMedia({ port: Number(new URL(url).port) });
    expect(await reaches(id, 'transcoding')).toMatchObject({ attempts: 1 });
    expect(await causes(id)).toEqual(['published', 'claim', 'uploaded']);
    expect(worker.health()).toEqual({ ok: true, body: { status: 'ok' } });
  });

  it('is dead-lettered when its attempts are spent', async () => {
    media.script = (call) => {
      call.line({ type: 'error', code: 'ffmpeg_failed', message: 'The video could not be composed.', retryable: true });
      call.end();
    };
    work();
    const id = await publishOne();
    expect(await reaches(id, 'failed')).toMatchObject({
      attempts: 5,
      errorCode: 'ffmpeg_failed',
      errorMessage: 'The video could not be composed.',
    });
    expect(media.calls).toHaveLength(5);
  });

  it('for a reason that will not pass is dead-lettered at once', async () => {
    media.script = (call) => {
      call.line({
        type: 'error',
        code: 'source_undecodable',
        message: 'The source video cannot be decoded.',
        retryable: false,
      });
      call.end();
    };
    work();
    const id = await publishOne();
    expect(await reaches(id, 'failed')).toMatchObject({ attempts: 1, errorCode: 'source_undecodable' });
  });

  it('because the worker shuts down drops the call, is handed back and costs no attempt', async () => {
    media.script = (call) => call.line(progressLine(1));
    const worker = work();
    const id = await publishOne();
    const call = await waitFor(() => media.calls[0], { label: 'the compose call' });
    expect(await worker.stop()).toEqual([]);
    await call.gone;
    expect(await render(id)).toMatchObject({ status: 'pending', attempts: 0, leaseToken: null });
    expect(await causes(id)).toEqual(['published', 'claim', 'shutdown']);
    media.script = (next) => {
      next.line(doneLine(next.request));
      next.end();
    };
    work();
    await reaches(id, 'transcoding');
  });

  it('because its lease was taken away drops the call and changes nothing', async () => {
    media.script = (call) => call.line(progressLine(1));
    work();
    const id = await publishOne();
    const call = await waitFor(() => media.calls[0], { label: 'the compose call' });
    const thief = { leaseToken: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc', leaseExpiresAt: new Date(Date.now() + 60_000) };
    await database.db.update(exerciseRenders).set(thief).where(eq(exerciseRenders.id, id));
    await call.gone;
    expect(await render(id)).toMatchObject({ status: 'rendering', leaseToken: thief.leaseToken, errorCode: null });
  });

  it('because its worker died is freed when the lease runs out, and baked by another', async () => {
    const id = await publishOne(false);
    await database.db
      .update(exerciseRenders)
      .set({
        status: 'rendering',
        attempts: 1,
        leaseToken: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc',
        leaseExpiresAt: new Date(Date.now() - 1),
      })
      .where(eq(exerciseRenders.id, id));
    work();
    expect(await reaches(id, 'transcoding')).toMatchObject({ attempts: 2 });
  });
});

describe('a dead worker', () => {
  it('that still seems to be at its job keeps nobody from the render once the lease has run out', async () => {
    const id = await publishOne();
    // Takes the job and its lock as a worker does, and never renews it.
    const dead = new Worker(queues.renders.name, null, {
      connection: new Redis(connection.redisUrl, { maxRetriesPerRequest: null }),
      prefix: connection.prefix,
      lockDuration: 500,
    });
    const job = await dead.getNextJob('dead-worker');
    expect(job?.data).toMatchObject({ renderId: id });
    await database.db
      .update(exerciseRenders)
      .set({
        status: 'rendering',
        attempts: 1,
        leaseToken: '0190b6a5-4a30-7cc3-9f6a-0d4f1c1f0abc',
        leaseExpiresAt: new Date(Date.now() + 1_000),
      })
      .where(eq(exerciseRenders.id, id));
    opened.push(async () => {
      await dead.close(true);
    });
    work();
    expect(await reaches(id, 'transcoding')).toMatchObject({ attempts: 2 });
  });
});

describe('a transcode', () => {
  it('whose webhook was lost is settled by asking Bunny', async () => {
    work({ TRANSCODE_DEADLINE_MS: '100' });
    const id = await publishOne();
    media.videos.set(guidOf({ renderId: id }), finished);
    await reaches(id, 'ready');
    expect((await causes(id)).at(-1)).toBe('backstop');
  });

  it('whose webhook was stored but never announced is settled by the replay', async () => {
    work();
    const id = await publishOne();
    const { videoGuid } = await reaches(id, 'transcoding');
    media.videos.set(videoGuid!, finished);
    await deliver(videoGuid!, 3, false);
    await reaches(id, 'ready');
  });

  it('ends the same whatever comes doubled, out of order or before its time', async () => {
    const id = await publishOne(false);
    const guid = guidOf({ renderId: id });
    media.videos.set(guid, finished);
    for (const status of [3, 0, 3, 1, 4, 2, 99]) await deliver(guid, status);
    work();
    await reaches(id, 'ready');
    for (const status of [5, 3, 4]) await deliver(guid, status);
    await waitFor(async () => (await queues.webhooks.getJobCounts('waiting', 'active', 'delayed')).waiting === 0, {
      label: 'the late webhooks',
    });
    expect(await render(id)).toMatchObject({ status: 'ready' });
  });

  it('is not taken for ready at its first resolution, nor because a webhook alone says so', async () => {
    work();
    const id = await publishOne();
    const { videoGuid } = await reaches(id, 'transcoding');
    media.videos.set(videoGuid!, { state: 'playable', lengthSeconds: 10 });
    for (const status of [4, 3]) await deliver(videoGuid!, status);
    await waitFor(
      async () => (await database.db.execute(sql`select 1 from webhook_events where outcome = 'api-lags'`)).rows.length,
      {
        label: 'the webhook to be doubted',
      },
    );
    expect(await render(id)).toMatchObject({ status: 'transcoding' });
    media.videos.set(videoGuid!, finished);
    await reaches(id, 'ready');
  });

  it.each([
    ['failed', { state: 'failed' as const }, 'transcode_failed'],
    ['shorter than what was uploaded', { state: 'finished' as const, lengthSeconds: 6 }, 'transcode_truncated'],
    [
      'finished with a warning of damage',
      { ...finished, messages: [{ level: 'warning' as const, code: 'TranscodingWarnings', text: 'x' }] },
      'transcode_truncated',
    ],
  ])('that is %s fails the render', async (_, status, code) => {
    work();
    const id = await publishOne();
    const { videoGuid } = await reaches(id, 'transcoding');
    media.videos.set(videoGuid!, status);
    await deliver(videoGuid!, 3);
    expect(await reaches(id, 'failed')).toMatchObject({ errorCode: code });
  });

  it('whose video has vanished is baked again, at most as often as attempts allow', async () => {
    work({ TRANSCODE_DEADLINE_MS: '100' });
    const id = await publishOne();
    expect(await reaches(id, 'failed')).toMatchObject({ attempts: 5, errorCode: 'transcode_missing' });
    expect(media.calls).toHaveLength(5);
  });

  it('that never ends is made anew, and fails when the attempts are spent', async () => {
    const id = await publishOne(false);
    media.videos.set(guidOf({ renderId: id }), { state: 'processing', lengthSeconds: 0 });
    work({ TRANSCODE_DEADLINE_MS: '100', TRANSCODE_POLL_MS: '100', TRANSCODE_GIVE_UP_MS: '150' });
    expect(await reaches(id, 'failed')).toMatchObject({ attempts: 5, errorCode: 'transcode_stuck' });
    expect(media.calls).toHaveLength(5);
    expect(media.calls[4]?.request.resume).toEqual({ masterSha256: 'b'.repeat(64) });
  });

  it('of an adopted video is asked for at once, since Bunny will not call again', async () => {
    media.script = (call) => {
      call.line(doneLine(call.request, { resumed: true }));
      call.end();
    };
    const id = await publishOne(false);
    media.videos.set(guidOf({ renderId: id }), finished);
    work({ TRANSCODE_DEADLINE_MS: '60000' });
    await reaches(id, 'ready');
  });

  it('whose bytes never arrived is resumed with the same video', async () => {
    const id = await publishOne(false);
    media.videos.set(guidOf({ renderId: id }), { state: 'created', lengthSeconds: 0 });
    work({ TRANSCODE_DEADLINE_MS: '100' });
    await waitFor(() => media.calls.length >= 2, { label: 'the second compose' });
    expect(media.calls[1]?.request.resume).toEqual({
      masterSha256: 'b'.repeat(64),
      videoGuid: guidOf({ renderId: id }),
    });
    media.videos.set(guidOf({ renderId: id }), finished);
    await reaches(id, 'ready');
  });
});
