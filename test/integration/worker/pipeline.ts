import { createReadStream, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import type { VideoModel } from '../../../lib/bunny/models.ts';
import type { Env } from '../../../lib/config/env.ts';
import type { Db } from '../../../lib/db/client.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { findRender } from '../../../lib/db/renders.ts';
import { exerciseRenders, exerciseSources, renderEvents } from '../../../lib/db/schema/index.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { createMediaClient } from '../../../lib/media/client.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { makeClip, testFfmpeg } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import type { RunningSim } from '../bunny/harness.ts';

type Dose = NonNullable<Parameters<typeof aProgram>[2][number][number]['dose']>;

/** Half a minute to encode on one core: long enough to die in the middle of. */
export const SLOW: Dose = {
  ...{ sets: 1, reps: 1, leadInSeconds: 0, cues: 'none' },
  tempo: { out: 60, hold: 0, back: 60, pause: 0 },
};
export const QUICK: Dose = { sets: 1, reps: 1, leadInSeconds: 0, cues: 'none' };

export const MEDIA_TOKEN = 'media-token-0123456789';

/** The environment of a media service of its own folders on this simulator. */
export async function mediaEnv(sim: RunningSim): Promise<Env & { MEDIA_WORK_DIR: string }> {
  const dir = await makeTempDir();
  const { ffmpegPath, ffprobePath } = testFfmpeg();
  return {
    MEDIA_TOKEN,
    MEDIA_CACHE_DIR: join(dir, 'cache'),
    MEDIA_WORK_DIR: join(dir, 'work'),
    MEDIA_HEARTBEAT_MS: '200',
    LOG_LEVEL: 'silent',
    FFMPEG_PATH: ffmpegPath,
    FFPROBE_PATH: ffprobePath,
    BUNNY_STREAM_URL: sim.streamUrl,
    BUNNY_STORAGE_URL: sim.storageUrl,
    BUNNY_CDN_URL: sim.cdnUrl,
    BUNNY_LIBRARY_ID: String(SIM_DEFAULTS.libraryId),
    BUNNY_STREAM_KEY: SIM_DEFAULTS.streamKey,
    BUNNY_STORAGE_ZONE: SIM_DEFAULTS.storageZone,
    BUNNY_STORAGE_KEY: SIM_DEFAULTS.storageKey,
  };
}

/** Puts a short film into the zone and answers the hash by which exercises name it. */
export async function uploadSource(mediaUrl: string): Promise<string> {
  const clip = await makeClip(await makeTempDir(), { seconds: 2, size: '160x120', rate: 10 });
  const client = createMediaClient({ baseUrl: mediaUrl, token: MEDIA_TOKEN });
  const upload = { tier: 'platform', kind: 'source' as const, body: createReadStream(clip) };
  return (await client.uploadAsset(upload, { signal: AbortSignal.timeout(60_000) })).sha256;
}

/** What tests of dying ask about renders, and the one way they make them. */
export function pipelineOf(db: Db) {
  const render = async (id: string) => {
    const found = await findRender(db, id);
    if (!found) throw new Error(`no render ${id}`);
    return found;
  };
  const history = (id: string) =>
    db.select().from(renderEvents).where(eq(renderEvents.renderId, id)).orderBy(renderEvents.id);
  return {
    render,
    history,
    causes: async (id: string) => (await history(id)).map(({ cause }) => cause),
    reaches: (id: string, status: RenderStatus, timeoutMs = 60_000) =>
      waitFor(
        async () => {
          const row = await render(id);
          return row.status === status ? row : null;
        },
        { label: `the render to be ${status}`, timeoutMs },
      ),
    /** Rows of an earlier test would be swept up by the next one's worker. */
    forgetAll: () => db.execute(sql`truncate exercise_renders, webhook_events, notifications, programs cascade`),
    /** Publishes a dose of a film in the zone; that its job is added is left to the sweep, as a crash would. */
    publish: async (sourceSha256: string, dose: Dose): Promise<string> => {
      const orgId = await anOrganisation(db);
      const exercise = await anExercise(db);
      await db
        .update(exerciseSources)
        .set({ sha256: sourceSha256, durationMs: 2_000 })
        .where(eq(exerciseSources.exerciseId, exercise.id));
      const programId = await aProgram(db, orgId, [[{ exerciseId: exercise.id, dose }]]);
      await publishProgram(db, { programId, orgId, by: 'specialist-1' });
      const [row] = await db.select().from(exerciseRenders).where(eq(exerciseRenders.exerciseId, exercise.id));
      if (!row) throw new Error('nothing was published');
      return row.id;
    },
    /** Publishes the same exercise and dose in another programme. */
    publishAgain: async (id: string, dose: Dose): Promise<void> => {
      const { exerciseId } = await render(id);
      const orgId = await anOrganisation(db);
      await publishProgram(db, {
        programId: await aProgram(db, orgId, [[{ exerciseId, dose }]]),
        orgId,
        by: 'specialist-2',
      });
    },
    notifications: async () => (await db.execute(sql`select kind, payload from notifications`)).rows,
  };
}

/** Videos of a recipe at Bunny, and how often bytes were taken for one of them. */
export async function atBunny(sim: RunningSim, recipeHash: string) {
  const videos: VideoModel[] = [];
  for await (const video of sim.stream.list()) if (video.title.endsWith(recipeHash.slice(0, 32))) videos.push(video);
  const { requests } = await sim.log();
  const uploads = requests.filter(
    ({ method, path, status }) =>
      method === 'PUT' && status === 200 && videos.some(({ guid }) => path.endsWith(`/videos/${guid}`)),
  );
  return { videos, uploads: uploads.length };
}

export const jobDirsIn = (workDir: string) => readdir(workDir);

/** Whether a process is there; one that only waits to be reaped has no command line any more. */
export const isRunning = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`).length > 0;
  } catch {
    return false;
  }
};
