import { eq } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { testRedis } from '../../support/redis.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker, type TestWorker } from '../../support/worker.ts';
import { type RunningSim, startSim } from '../bunny/harness.ts';
import { MEDIA_TOKEN, type RunningMedia, startMedia } from '../media/harness.ts';
import { atBunny, pipelineOf, QUICK, uploadSource } from './pipeline.ts';

const database = useTestDatabase();
let sim: RunningSim;
let media: RunningMedia;
let source: string;
let pipeline: ReturnType<typeof pipelineOf>;
let worker: TestWorker;
let doses = 0;

beforeAll(async () => {
  sim = await startSim();
  media = await startMedia({}, { sim });
  source = await uploadSource(media.url);
  pipeline = pipelineOf(database.db);
});
afterAll(async () => {
  await media.close();
  await sim.close();
});

beforeEach(async () => {
  await pipeline.forgetAll();
  await fetch(`${sim.streamUrl}/sim/faults`, { method: 'DELETE' });
  await sim.faults({ webhooks: { off: true } });
});
afterEach(() => worker.stop());

function work(change: Record<string, string> = {}): void {
  const { url, prefix } = testRedis();
  worker = startTestWorker(
    { databaseUrl: database.url, redisUrl: url, prefix, mediaUrl: media.url, mediaToken: MEDIA_TOKEN },
    { RENDER_LEASE_MS: '10000', TRANSCODE_DEADLINE_MS: '100', TRANSCODE_POLL_MS: '100', ...change },
  );
}

/** A dose nobody has asked for, made of the same segments as the others. */
const publish = () => {
  doses += 1;
  return pipeline.publish(source, { ...QUICK, reps: 1, sets: 1 + (doses % 20), restSeconds: 0 });
};
const bunny = async (id: string) => atBunny(sim, (await pipeline.render(id)).recipeHash);

describe('without a single webhook', { timeout: 120_000 }, () => {
  it('a video that finishes makes its render ready, without another upload', async () => {
    work();
    const ids = await Promise.all([publish(), publish()]);
    for (const id of ids) {
      const ready = await pipeline.reaches(id, 'ready');
      expect(ready.attempts).toBe(1);
      expect(await pipeline.causes(id)).toEqual(['published', 'claim', 'uploaded', 'backstop']);
      const { videos, uploads } = await bunny(id);
      expect([videos.map(({ guid }) => guid), uploads]).toEqual([[ready.videoGuid], 1]);
    }
    expect((await sim.log()).deliveries).toEqual([]);
  });

  it('a video that is cut short fails its render; published again, it is made anew from what is stored', async () => {
    await sim.faults({ truncatedFinish: 1 });
    work();
    const dose = { ...QUICK, reps: 4 };
    const id = await pipeline.publish(source, dose);
    const failed = await pipeline.reaches(id, 'failed');
    expect(failed).toMatchObject({ errorCode: 'transcode_truncated', attempts: 1 });
    expect((await bunny(id)).uploads).toBe(1);
    await pipeline.publishAgain(id, dose);
    const ready = await pipeline.reaches(id, 'ready');
    expect(ready.videoGuid).not.toBe(failed.videoGuid);
    expect(ready).toMatchObject({ generation: 1, masterSha256: failed.masterSha256 });
  });

  it('a video that vanishes is uploaded anew from what is stored, as often as attempts allow, and then fails', async () => {
    await sim.faults({ missingVideo: true });
    work();
    const id = await publish();
    const failed = await pipeline.reaches(id, 'failed');
    expect(failed).toMatchObject({ errorCode: 'transcode_missing', attempts: failed.maxAttempts });
    const causes = await pipeline.causes(id);
    expect(causes.filter((cause) => cause === 'claim')).toHaveLength(failed.maxAttempts);
    expect((await bunny(id)).videos).toEqual([]);
  });

  it('a video that vanished once is made again, without a second bake', async () => {
    await sim.faults({ missingVideo: 1 });
    work();
    const id = await publish();
    const ready = await pipeline.reaches(id, 'ready');
    expect(ready.attempts).toBe(2);
    expect((await bunny(id)).videos.map(({ guid }) => guid)).toEqual([ready.videoGuid]);
  });

  it('a video whose bytes never arrived gets them, itself and without a bake', async () => {
    work({ TRANSCODE_DEADLINE_MS: '60000' });
    const id = await publish();
    const uploaded = await pipeline.reaches(id, 'transcoding');
    const { title } = await sim.stream.get(uploaded.videoGuid ?? '');
    await sim.stream.delete(uploaded.videoGuid ?? '');
    const empty = await sim.stream.create({ title });
    await database.db
      .update(exerciseRenders)
      .set({ videoGuid: empty.guid, transcodeDeadlineAt: new Date() })
      .where(eq(exerciseRenders.id, id));
    const ready = await pipeline.reaches(id, 'ready');
    expect(ready).toMatchObject({ videoGuid: empty.guid, attempts: 2, masterSha256: uploaded.masterSha256 });
    const { videos, uploads } = await bunny(id);
    expect([videos.length, uploads]).toEqual([1, 1]);
  });

  it('a transcode that never ends is asked for again and again, and given up for another video', async () => {
    await sim.faults({ stuckTranscode: 1 });
    work({ TRANSCODE_GIVE_UP_MS: '1500' });
    const id = await publish();
    const first = await waitFor(async () => (await pipeline.render(id)).videoGuid, {
      ...{ label: 'the first video', timeoutMs: 30_000 },
    });
    const asked = await waitFor(async () => (await pipeline.render(id)).transcodeCheckedAt, {
      ...{ label: 'Bunny to be asked', timeoutMs: 30_000 },
    });
    await waitFor(async () => ((await pipeline.render(id)).transcodeCheckedAt ?? asked) > asked, {
      ...{ label: 'Bunny to be asked again', timeoutMs: 30_000 },
    });
    const ready = await pipeline.reaches(id, 'ready');
    expect(ready.videoGuid).not.toBe(first);
    expect(ready.attempts).toBe(2);
    const errors = (await pipeline.history(id)).flatMap(({ error }) => (error ? [error.code] : []));
    expect(errors).toEqual(['transcode_stuck']);
  });
});
