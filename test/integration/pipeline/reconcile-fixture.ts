import { sql } from 'drizzle-orm';
import { pipelineSchema } from '../../../lib/config/pipeline.ts';
import { findRender } from '../../../lib/db/renders.ts';
import { type exerciseRenders, renderEvents } from '../../../lib/db/schema/index.ts';
import type { ComposeDone, ComposeRequest } from '../../../lib/media/contract.ts';
import { createFleet, type Inventory } from '../../../lib/media/fleet.ts';
import { videoTitle } from '../../../lib/media/video-title.ts';
import { reconcile } from '../../../lib/pipeline/reconcile.ts';
import type { ReconcileAction, ReconcileReport } from '../../../lib/pipeline/reconcile-report.ts';
import type { ReconcileDeps, ReconcileOptions } from '../../../lib/pipeline/reconcile-run.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { silentLog } from '../../support/log.ts';
import { insertRenders } from '../../support/renders.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import type { useTestDatabase } from '../../support/test-db.ts';
import { MEDIA_TOKEN, type RunningMedia, requestFor, startMedia } from '../media/harness.ts';

type Row = Partial<typeof exerciseRenders.$inferInsert>;
type Counts = Record<string, number>;

/** One real bake on a simulator and a media service of its own; rows and videos of it are made as a test wants them. */
export async function bakedOnce() {
  const media = await startMedia();
  const source = await media.upload(await makeClip(await makeTempDir(), { seconds: 2 }));
  const request = requestFor(source);
  const { done } = await media.bake(request);
  const dir = `renders/${request.recipeHash}`;
  const files = new Map<string, Buffer>();
  for (const { path } of await media.sim.storage.list(dir)) {
    const { stream } = await media.sim.storage.get(path);
    files.set(path, Buffer.concat(await stream.toArray()));
  }
  return { media, source, request, done, dir, files };
}
export type BakedOnce = Awaited<ReturnType<typeof bakedOnce>>;

export function reconcileFixture(database: ReturnType<typeof useTestDatabase>, baked: () => BakedOnce) {
  const sim = (): RunningMedia['sim'] => baked().media.sim;
  const title = (hash = baked().request.recipeHash) => videoTitle('bakehouse', hash);

  /** Everything as after the bake, with no row, no video and no fault. */
  const reset = async () => {
    await database.db.execute(sql`truncate exercise_renders, webhook_events, programs, exercises cascade`);
    await fetch(`${sim().streamUrl}/sim/faults`, { method: 'DELETE' });
    for await (const { guid } of sim().stream.list()) await sim().stream.delete(guid);
    for (const { path } of await sim().storage.list('renders'))
      for (const file of await sim().storage.list(path)) await sim().storage.delete(file.path);
    for (const [path, bytes] of baked().files) await sim().storage.put(path, bytes);
  };

  const emptyVideo = async (name = title(), collectionId?: string) =>
    (await sim().stream.create({ title: name, ...(collectionId !== undefined && { collectionId }) })).guid;

  /** A video of the bake's own master that has finished; garbage instead of the master fails. */
  const video = async ({
    name = title(),
    bytes = baked().files.get(masterPath()) ?? Buffer.alloc(0),
    ...given
  }: {
    name?: string;
    bytes?: Buffer;
    collectionId?: string;
  } = {}) => {
    const guid = await emptyVideo(name, given.collectionId);
    await sim().stream.upload(guid, bytes);
    await sim().ended(guid);
    return guid;
  };
  const masterPath = () => `${baked().dir}/${baked().done.masterSha256}.mp4`;

  /** A row as the bake would have left it; of another hash where `change` says so. */
  const row = async (change: Row): Promise<string> => {
    const { request, done } = baked();
    const [made] = await insertRenders(database.db, [{ ...rowOf(request, done), ...change }]);
    return made!.id;
  };

  const render = async (id: string) => (await findRender(database.db, id))!;

  /** `media` replaces single answers of the real one. */
  const run = async ({
    config = {},
    url = baked().media.url,
    media = {},
    onChanged = () => undefined,
    ...options
  }: Partial<ReconcileOptions & Pick<ReconcileDeps, 'onChanged'>> & {
    config?: Record<string, string>;
    url?: string;
    media?: Partial<Inventory>;
  } = {}) => {
    const actions: ReconcileAction[] = [];
    const report = await reconcile(
      {
        config: pipelineSchema.parse(config),
        ...{ database, onChanged, log: silentLog },
        media: { ...createFleet({ targets: [url], token: MEDIA_TOKEN, timeoutMs: 5_000 }), ...media },
      },
      { dryRun: false, graceMs: 0, onAction: (action) => actions.push(action), ...options },
    );
    return { report, actions, counts: countsOf(report) };
  };

  /** Everything that a dry run must leave as it is. */
  const snapshot = async () => ({
    rows: (await database.db.execute(sql`select * from exercise_renders order by id`)).rows,
    events: await database.db.select().from(renderEvents),
    videos: (await sim().stream.listPage({ number: 1, itemsPerPage: 1000 })).items,
    files: await sim().storage.list(baked().dir),
    writes: (await sim().log()).requests.filter(({ method }) => method !== 'GET').length,
  });

  return { sim, title, reset, emptyVideo, video, row, render, run, snapshot, masterPath };
}

/** What is not zero. */
function countsOf({ repaired, deleted, left, failed }: ReconcileReport): Counts {
  const all: Counts = { ...repaired, delete: deleted };
  for (const [name, count] of Object.entries(left)) all[`left ${name}`] = count;
  for (const [name, count] of Object.entries(failed)) all[`no ${name}`] = count;
  return Object.fromEntries(Object.entries(all).filter(([, count]) => count > 0));
}

function rowOf({ recipe, recipeHash }: ComposeRequest, done: ComposeDone): Row {
  return {
    ...{ recipe, recipeHash, language: recipe.language, attempts: 1 },
    ...{ masterSha256: done.masterSha256, durationMs: done.durationMs, baselines: done.baselines },
    ...{ manifestUrl: done.manifestUrl, captionsUrl: done.captionsUrl, posterUrl: done.posterUrl },
    warnings: done.warnings,
  };
}

export const ready = { status: 'ready', readyAt: new Date() } as const;
export const transcoding = (ageMs = 60_000) => ({
  status: 'transcoding' as const,
  transcodeStartedAt: new Date(Date.now() - ageMs),
  transcodeDeadlineAt: new Date(Date.now() + 60_000),
});
export const rendering = { status: 'rendering', leaseToken: '6f1d7a54-1c53-4c8e-9d4c-0a4f2f9f7f10' } as const;
