import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { reconcileCommand } from '../../../apps/cli/commands/reconcile.ts';
import { retryCommand } from '../../../apps/cli/commands/retry.ts';
import { withLock } from '../../../lib/db/lock.ts';
import { dutyRuns, exerciseRenders } from '../../../lib/db/schema/index.ts';
import { RECONCILE_LOCK } from '../../../lib/pipeline/reconcile.ts';
import { runCommand } from '../../support/cli.ts';
import { shaOf } from '../../support/clinic.ts';
import { testRedis } from '../../support/redis.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { startTestWorker } from '../../support/worker.ts';
import { MEDIA_TOKEN } from '../media/harness.ts';
import { atBunny, pipelineOf, QUICK, uploadSource } from '../worker/pipeline.ts';
import { type BakedOnce, bakedOnce, ready, reconcileFixture } from './reconcile-fixture.ts';

const database = useTestDatabase();
let baked: BakedOnce;
let film: string;
const { sim, title, reset, emptyVideo, video, row, run } = reconcileFixture(database, () => baked);
let workers: ReturnType<typeof startTestWorker>[] = [];

beforeAll(async () => {
  baked = await bakedOnce();
  film = await uploadSource(baked.media.url);
});
afterAll(() => baked.media.close());
beforeEach(reset);
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  workers = [];
});

function work(env: Record<string, string> = {}) {
  const { url: redisUrl, prefix } = testRedis();
  workers.push(
    startTestWorker(
      { databaseUrl: database.url, redisUrl, prefix, mediaUrl: baked.media.url, mediaToken: MEDIA_TOKEN },
      // No webhook comes here: the backstop asks soon.
      { TRANSCODE_DEADLINE_MS: '100', TRANSCODE_POLL_MS: '100', ...env },
    ),
  );
}
const pipeline = () => pipelineOf(database.db);
const manifestOf = (hash: string) => `renders/${hash}/manifest.json`;
const dose = (repetitions: number) => ({ ...QUICK, reps: repetitions });

describe('a render that reconcile has started anew', () => {
  it('has the same video again where only stored files were lost, and no second one', async () => {
    work();
    const id = await pipeline().publish(film, dose(1));
    const before = await pipeline().reaches(id, 'ready');
    await sim().storage.delete(new URL(before.posterUrl!).pathname.slice(1));
    expect((await run()).counts).toMatchObject({ rebake: 1 });
    const after = await waitFor(
      async () => {
        const now = await pipeline().render(id);
        return now.generation === 1 && now.status === 'ready' ? now : null;
      },
      { label: 'the second generation', timeoutMs: 25_000 },
    );
    expect(after.videoGuid).toBe(before.videoGuid);
    expect(await atBunny(sim(), before.recipeHash)).toMatchObject({ videos: [{}], uploads: 1 });
    expect((await run()).counts).not.toHaveProperty('rebake');
  });

  it('leaves a truncated video behind when it is requeued, which is an orphan and goes', async () => {
    await sim().faults({ truncatedFinish: 1 });
    work();
    const id = await pipeline().publish(film, dose(4));
    const failed = await pipeline().reaches(id, 'failed');
    expect(failed.errorCode).toBe('transcode_truncated');
    await runCommand(retryCommand(), [id], { DATABASE_URL: database.url });
    const again = await pipeline().reaches(id, 'ready');
    expect(again.videoGuid).not.toBe(failed.videoGuid);
    expect((await atBunny(sim(), again.recipeHash)).videos).toHaveLength(2);
    expect((await run()).counts).toMatchObject({ delete: 1 });
    expect((await atBunny(sim(), again.recipeHash)).videos.map(({ guid }) => guid)).toEqual([again.videoGuid]);
  });
});

describe('reconcile while everything is at work', () => {
  it('loses nothing and deletes no video of a live render, without any grace', async () => {
    await sim().faults({ latencyMs: 5 });
    work();
    work();
    let publishing = true;
    const deleted: string[] = [];
    const reconciling = (async () => {
      for (let round = 0; publishing || round < 3; round++) {
        const { actions } = await run({ graceMs: 0 });
        deleted.push(...actions.flatMap((action) => (action.do === 'delete' ? [action.videoGuid] : [])));
        expect(actions.map((action) => action.do)).not.toContain('new-video');
        // Without a pause it would take a core from the bakes that it is held against.
        await delay(25);
      }
    })();
    const orphans: string[] = [];
    const ids: string[] = [];
    for (let at = 0; at < 6; at++) {
      ids.push(await pipeline().publish(film, dose(1 + (at % 3))));
      orphans.push(await emptyVideo(title(shaOf(`orphan ${at}`))));
    }
    for (const id of ids) await pipeline().reaches(id, 'ready', 60_000);
    publishing = false;
    await reconciling;
    expect([...deleted].sort()).toEqual(orphans.sort());
    const rows = await database.db.select().from(exerciseRenders);
    expect(rows.map(({ status, generation, attempts }) => [status, generation, attempts])).toEqual(
      Array(6).fill(['ready', 0, 1]),
    );
    for (const { recipeHash, videoGuid } of rows) {
      const { videos, uploads } = await atBunny(sim(), recipeHash);
      expect([videos.map(({ guid }) => guid), uploads]).toEqual([[videoGuid], 1]);
    }
  }, 120_000);
});

describe('the duty of the worker', () => {
  beforeEach(async () => {
    await database.db.delete(dutyRuns);
  });

  it('reconciles after one period, not at the start, and again after the next', async () => {
    const first = await emptyVideo();
    work({ RECONCILE_MS: '1500', RECONCILE_GRACE_MS: '0' });
    const started = Date.now();
    const videos = async () => (await sim().stream.listPage({ number: 1, itemsPerPage: 100 })).items.length;
    await waitFor(async () => (await videos()) === 0, { label: `the deletion of ${first}` });
    expect(Date.now() - started).toBeGreaterThan(1_200);
    await emptyVideo();
    await waitFor(async () => (await videos()) === 0, { label: 'the next run' });
    await waitFor(
      async () =>
        (await workers[0]!.registry.metrics()).includes(
          'bakehouse_reconcile_actions_total{action="delete",app="worker"} 2',
        ),
      { label: 'the metric' },
    );
  });

  it('lets a worker stop in the middle of it', async () => {
    for (let at = 0; at < 40; at++) await row({ ...ready, videoGuid: `gone-${at}` });
    await sim().faults({ latencyMs: 300 });
    work({ RECONCILE_MS: '200' });
    await waitFor(async () => (await sim().log()).requests.some(({ path }) => path.includes('gone-')), {
      label: 'the run',
    });
    const started = Date.now();
    expect(await workers[0]!.stop()).toEqual([]);
    expect(Date.now() - started).toBeLessThan(2_500);
  });
});

describe('bakehouse reconcile', () => {
  const cli = (...args: string[]) =>
    runCommand(reconcileCommand(), args, {
      DATABASE_URL: database.url,
      MEDIA_URL: baked.media.url,
      MEDIA_TOKEN,
      LOG_LEVEL: 'silent',
    });

  it('shows a plan that changes nothing, then what it did, and status 0', async () => {
    const id = await row({ ...ready, videoGuid: await video() });
    await sim().storage.delete(manifestOf(baked.request.recipeHash));
    const orphan = await emptyVideo(title(shaOf('nobody')));
    const plan = await cli('--dry-run', '--grace', '0');
    expect(plan.exitCode).toBe(0);
    expect(plan.stdout).toContain(`would repair (manifest)     render ${id}`);
    expect(plan.stdout).toContain(`would delete                video ${orphan}`);
    expect(plan.stdout).toMatch(/^would repair +1 +manifest 1$/m);
    expect((await sim().log()).requests.at(-1)?.method).toBe('GET');
    expect((await cli('--grace', '1h')).stdout).toMatch(/^left +1 +within-grace 1$/m);
    const done = await cli('--json', '--grace', '0');
    expect(JSON.parse(done.stdout)).toMatchObject({
      ...{ dryRun: false, complete: true, deleted: 1, repaired: { manifest: 0 } },
      actions: [{ do: 'delete', videoGuid: orphan }],
    });
  });

  it('ends with status 1 where something could not be examined', async () => {
    const id = await row({ ...ready, videoGuid: await video() });
    await sim().faults({ rate5xx: { rate: 1, match: '/renders/' } });
    const { exitCode, stdout } = await cli();
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed .* artefacts 1, storage-list 1$/m);
    expect((await pipeline().render(id)).status).toBe('ready');
  });

  it('says so where another one is running, and changes nothing', async () => {
    await emptyVideo();
    const { exitCode, stderr } = (await withLock(database, RECONCILE_LOCK, () => cli('--grace', '0')))!;
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Another reconcile is running')]);
    expect((await sim().stream.listPage({ number: 1, itemsPerPage: 10 })).items).toHaveLength(1);
  });

  it.each(['-1', 'soon', '1.5', '9999999999999999'])('refuses --grace %s', async (grace) => {
    expect(await cli(`--grace=${grace}`)).toMatchObject({ exitCode: 1, stdout: '' });
  });

  it('names what is missing where no media service is known', async () => {
    const { exitCode, stderr } = await runCommand(reconcileCommand(), [], { DATABASE_URL: database.url });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('MEDIA_URL')]);
  });
});
