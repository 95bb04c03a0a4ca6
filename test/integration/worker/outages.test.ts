import { eq, sql } from 'drizzle-orm';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { publishProgram } from '../../../lib/db/publish.ts';
import { exerciseRenders, renderEvents } from '../../../lib/db/schema/index.ts';
import { renderJobId } from '../../../lib/domain/render-states.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { doneLine, guidOf, progressLine } from '../../support/scripted-media.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker } from '../../support/worker.ts';
import { usePipeline } from './fixture.ts';

const pipeline = usePipeline();
const { startApp } = useAppProcesses({ timeoutMs: 60_000 });

/** A bake under way in a worker that reaches Postgres through a proxy. */
async function bakeBehindProxy(env: Record<string, string>) {
  const proxy = await startTcpProxy(pipeline.database.url);
  pipeline.own(proxy, proxy.close);
  const media = await pipeline.media();
  media.script = (call) => call.line(progressLine(1));
  const connection = pipeline.connection();
  const given = { ...connection, databaseUrl: proxy.url, mediaUrl: media.url, mediaToken: media.token };
  const worker = startTestWorker(given, env);
  pipeline.own(worker, worker.stop);
  const [id] = (await pipeline.publish(connection, 1)) as [string];
  const call = await waitFor(() => media.calls[0], { label: 'the compose call' });
  return { proxy, media, id, call };
}

describe('a Postgres that restarts in the middle of a bake', { timeout: 60_000 }, () => {
  it('within the lease costs nothing: the worker goes on under its token, even where the bake ends meanwhile', async () => {
    const { proxy, media, id, call } = await bakeBehindProxy({ RENDER_LEASE_MS: '20000' });
    await proxy.refuse();
    call.line(doneLine(call.request));
    call.end();
    await call.gone;
    await proxy.pass();
    const [row] = await pipeline.reaches([id], 'transcoding');
    expect(row).toMatchObject({ attempts: 1, videoGuid: guidOf({ renderId: id }) });
    expect(media.calls).toHaveLength(1);
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'uploaded']);
  });

  it('and stays away longer than the lease ends it: the call is dropped before another may have the render', async () => {
    const { proxy, media, id, call } = await bakeBehindProxy({ RENDER_LEASE_MS: '1500' });
    media.script = (next) => {
      next.line(doneLine(next.request));
      next.end();
    };
    await proxy.refuse();
    await call.gone;
    expect(await pipeline.render(id)).toMatchObject({ status: 'rendering', attempts: 1 });
    await proxy.pass();
    expect((await pipeline.reaches([id], 'transcoding', 30_000))[0]).toMatchObject({ attempts: 2 });
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'lease-expired', 'claim', 'uploaded']);
  });
});

describe('a render that failed and is published again', { timeout: 60_000 }, () => {
  it('is really queued and baked, though Redis still holds its finished job and a ghost of its next one', async () => {
    const connection = pipeline.connection();
    const media = await pipeline.media();
    media.script = (call, nth) => {
      if (nth > 1) call.line(doneLine(call.request));
      else call.line({ type: 'error', code: 'source_undecodable', message: 'It cannot be read.', retryable: false });
      call.end();
    };
    pipeline.work(connection, [media]);
    const [id] = (await pipeline.publish(connection, 1)) as [string];
    const [failed] = await pipeline.reaches([id], 'failed');
    const queues = openQueues(connection, silentLog);
    pipeline.own(queues, queues.close);
    const { recipeHash, exerciseId } = failed!;
    await waitFor(async () => (await queues.renders.getJobState(renderJobId(recipeHash, 0))) === 'completed', {
      label: 'the first job to be kept as finished',
    });
    const redis = new Redis(connection.redisUrl);
    await redis.hset(`${connection.prefix}:renders:${renderJobId(recipeHash, 1)}`, 'name', 'render');
    redis.disconnect();

    const { db } = pipeline.database;
    const orgId = (await db.execute<{ org_id: string }>(sql`select org_id from exercises where id = ${exerciseId}`))
      .rows[0]!.org_id;
    const programId = await aProgram(db, orgId, [[{ exerciseId }]]);
    await publishProgram(db, { programId, orgId, by: 'specialist-1' });
    const [again] = await pipeline.reaches([id], 'transcoding', 30_000);
    expect(again).toMatchObject({ generation: 1, attempts: 1, errorCode: null });
    expect(media.calls).toHaveLength(2);
  });
});

describe('Bunny', { timeout: 60_000 }, () => {
  it('that asks to be left alone is: the render waits at least as long', async () => {
    const connection = pipeline.connection();
    const media = await pipeline.media();
    media.script = (call) => {
      const refusal = {
        code: 'bunny_unavailable',
        message: 'The video platform could not be reached.',
        retryable: true,
      };
      call.line({ type: 'error', ...refusal, retryAfterMs: 60_000 });
      call.end();
    };
    pipeline.work(connection, [media]);
    const before = Date.now();
    const [id] = (await pipeline.publish(connection, 1)) as [string];
    const { notBefore } = await waitFor(
      async () => {
        const row = await pipeline.render(id);
        return row.status === 'pending' && row.notBefore ? row : null;
      },
      { label: 'the render to wait' },
    );
    expect(notBefore!.getTime()).toBeGreaterThanOrEqual(before + 60_000);
    expect(media.calls).toHaveLength(1);
  });

  it('that works on a video for hours is asked again, and the log raises an alarm', async () => {
    const connection = pipeline.connection();
    const media = await pipeline.media();
    const [id] = (await pipeline.publish(connection, 1)) as [string];
    media.videos.set('video-slow', { state: 'processing', lengthSeconds: 0 });
    const { db } = pipeline.database;
    const overdue = {
      ...{ status: 'transcoding' as const, videoGuid: 'video-slow', masterSha256: 'b'.repeat(64), durationMs: 10_000 },
      ...{ transcodeStartedAt: new Date(Date.now() - 5 * 3_600_000), transcodeDeadlineAt: new Date() },
    };
    await db.update(exerciseRenders).set(overdue).where(eq(exerciseRenders.id, id));
    const { child } = await startApp('worker', {
      ...{ DATABASE_URL: pipeline.database.url, REDIS_URL: connection.redisUrl, REDIS_PREFIX: connection.prefix },
      ...{ MEDIA_URL: media.url, MEDIA_TOKEN: media.token, LOG_LEVEL: 'error', TRANSCODE_ALARM_MS: '14400000' },
    });
    let log = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    await waitFor(() => log.includes('transcode takes very long') && log.includes(id), {
      ...{ label: 'the alarm', timeoutMs: 20_000 },
    });
    const row = await pipeline.render(id);
    expect(row).toMatchObject({ status: 'transcoding', attempts: 0 });
    expect(row.transcodeDeadlineAt!.getTime()).toBeGreaterThan(Date.now());
    const moves = await db.select().from(renderEvents).where(eq(renderEvents.renderId, id));
    expect(moves.map(({ cause }) => cause)).toEqual(['published']);
  });

  it.each([
    ['finished', 'transcoding'],
    ['playable', 'ready'],
  ] as const)(
    'that can play a first resolution makes a render ready only where that is wanted (READY_ON=%s)',
    async (READY_ON, status) => {
      const connection = pipeline.connection();
      const media = await pipeline.media();
      pipeline.work(connection, [media], { READY_ON, TRANSCODE_DEADLINE_MS: '100', TRANSCODE_POLL_MS: '100' });
      const [id] = (await pipeline.publish(connection, 1)) as [string];
      media.videos.set(guidOf({ renderId: id }), { state: 'playable', lengthSeconds: 10 });
      await waitFor(async () => (await pipeline.render(id)).transcodeCheckedAt, {
        ...{ label: 'Bunny to be asked', timeoutMs: 15_000 },
      });
      expect((await pipeline.render(id)).status).toBe(status);
    },
  );
});
