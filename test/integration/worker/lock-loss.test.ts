import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { doneLine, progressLine, type ScriptedMedia } from '../../support/scripted-media.ts';
import { waitFor } from '../../support/wait.ts';
import { usePipeline } from './fixture.ts';

const pipeline = usePipeline();

/** More than two renewals of a lock that lasts a second. */
const RENEWALS_MS = 1_300;

async function bakeUnderWay(
  script: (call: ScriptedMedia['calls'][number]) => void = (call) => call.line(progressLine(1)),
) {
  const { redis, connection } = await pipeline.privateRedis();
  const admin = new Redis(redis.url);
  pipeline.own(admin, () => admin.disconnect());
  const media = await pipeline.media();
  media.script = script;
  const worker = pipeline.work(connection, [media]);
  const [id] = (await pipeline.publish(connection, 1)) as [string];
  const call = await waitFor(() => media.calls[0], { label: 'the compose call' });
  return { admin, connection, media, worker, id, call };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const finish = (call: ScriptedMedia['calls'][number]) => {
  call.line(doneLine(call.request));
  call.end();
};

describe('FLUSHALL while a bake is under way', () => {
  it('does not end it: it is uploaded, with one call and one attempt', async () => {
    const { admin, media, worker, id, call } = await bakeUnderWay();
    await admin.flushall();
    await pause(RENEWALS_MS);
    finish(call);
    const [baked] = await pipeline.reaches([id], 'transcoding');
    expect(baked).toMatchObject({ attempts: 1 });
    expect(media.calls).toHaveLength(1);
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'uploaded']);
    expect(await worker.stop()).toEqual([]);
  });

  it('loses nothing of a bake that is to be tried again: the sweep adds a job for it', async () => {
    const { admin, media, id, call } = await bakeUnderWay();
    await admin.flushall();
    await pause(RENEWALS_MS);
    media.script = finish;
    call.line({ type: 'error', code: 'ffmpeg_failed', message: 'The video could not be composed.', retryable: true });
    call.end();
    const [baked] = await pipeline.reaches([id], 'transcoding');
    expect(baked).toMatchObject({ attempts: 2 });
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'retry', 'claim', 'uploaded']);
  });

  it('does not keep a shutdown from handing it back', async () => {
    const { admin, worker, id, call } = await bakeUnderWay();
    await admin.flushall();
    await pause(RENEWALS_MS);
    expect(await worker.stop()).toEqual([]);
    await call.gone;
    expect(await pipeline.render(id)).toMatchObject({ status: 'pending', attempts: 0 });
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'shutdown']);
  });

  it('leaves a job that waits for its permit waiting, and its render is baked once', async () => {
    const { admin, media, connection, call } = await bakeUnderWay();
    media.capacity.slots = 1;
    await pause(300);
    const [next] = (await pipeline.publish(connection, 1)) as [string];
    await pause(300);
    await admin.flushall();
    await pause(RENEWALS_MS);
    expect(await pipeline.render(next)).toMatchObject({ status: 'pending', attempts: 0 });
    media.script = finish;
    finish(call);
    await pipeline.reaches([next], 'transcoding');
    expect(media.calls).toHaveLength(2);
  });
});

describe('a lock that is lost while the queue knows the job', () => {
  it('ends the bake where somebody else has it: the call is dropped, the render handed back without its attempt, and baked again', async () => {
    const { admin, media, id, call } = await bakeUnderWay();
    media.script = finish;
    const [lock] = await admin.keys('bakehouse:renders:*:lock');
    await admin.set(lock!, 'the token of another', 'PX', 1_000);
    await call.gone;
    const [baked] = await pipeline.reaches([id], 'transcoding');
    expect(baked).toMatchObject({ attempts: 1 });
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'lock-lost', 'claim', 'uploaded']);
  });

  it('ends nothing where it could only not be renewed: a Redis without memory', async () => {
    const { admin, media, id, call } = await bakeUnderWay();
    await admin.config('SET', 'maxmemory', '1');
    await pause(RENEWALS_MS);
    finish(call);
    const [baked] = await pipeline.reaches([id], 'transcoding');
    await admin.config('SET', 'maxmemory', '0');
    expect(baked).toMatchObject({ attempts: 1 });
    expect(media.calls).toHaveLength(1);
    expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'uploaded']);
  });
});
