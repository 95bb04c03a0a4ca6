import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { SIM_DEFAULTS, type SimConfig } from '../../../apps/bunny-sim/sim.ts';
import { createMedia } from '../../../apps/media/media.ts';
import { loadMediaConfig } from '../../../lib/config/media.ts';
import { normaliseRecipe, type RecipeInput, recipeHash } from '../../../lib/domain/recipe.ts';
import { createMediaClient } from '../../../lib/media/client.ts';
import type { AssetKind, ComposeLine, ComposeRequest } from '../../../lib/media/contract.ts';
import { type Manifest, manifestSchema } from '../../../lib/media/manifest.ts';
import { testFfmpeg } from '../../support/ffmpeg.ts';
import { silentLog } from '../../support/log.ts';
import { aRecipe } from '../../support/recipes.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { type RunningSim, startSim } from '../bunny/harness.ts';

export const MEDIA_TOKEN = 'media-token-0123456789';

/** A media service in this process on a simulator of its own, or on one that is given. */
export async function startMedia(
  env: Record<string, string> = {},
  { sim: given, faults }: { sim?: RunningSim; faults?: SimConfig['faults'] } = {},
) {
  const sim = given ?? (await startSim({ faults }));
  const dir = await makeTempDir();
  const config = loadMediaConfig({
    MEDIA_TOKEN,
    MEDIA_CACHE_DIR: join(dir, 'cache'),
    MEDIA_WORK_DIR: join(dir, 'work'),
    MEDIA_ENCODERS: '2',
    BUNNY_STREAM_URL: sim.streamUrl,
    BUNNY_STORAGE_URL: sim.storageUrl,
    BUNNY_CDN_URL: sim.cdnUrl,
    BUNNY_LIBRARY_ID: String(SIM_DEFAULTS.libraryId),
    BUNNY_STREAM_KEY: SIM_DEFAULTS.streamKey,
    BUNNY_STORAGE_ZONE: SIM_DEFAULTS.storageZone,
    BUNNY_STORAGE_KEY: SIM_DEFAULTS.storageKey,
    ...env,
  });
  const media = await createMedia(config, { toolchain: testFfmpeg(), log: silentLog });
  const client = createMediaClient({ baseUrl: media.url, token: MEDIA_TOKEN });
  const upload = (file: string, kind: AssetKind = 'source', tier = 'platform') =>
    client.uploadAsset({ tier, kind, body: createReadStream(file) }, { signal: AbortSignal.timeout(60_000) });
  const bake = async (request: ComposeRequest, signal: AbortSignal = AbortSignal.timeout(120_000)) => {
    const lines: ComposeLine[] = [];
    const done = await client.composeRender(request, { signal, silenceMs: 30_000, onLine: (line) => lines.push(line) });
    return { done, lines };
  };
  const stored = async (url: string): Promise<Buffer> => {
    const { stream } = await sim.storage.get(new URL(url).pathname.slice(1));
    return Buffer.concat(await stream.toArray());
  };
  return {
    ...{ sim, config, url: media.url, steps: media.steps, client, upload, bake, stored },
    manifestOf: async (url: string): Promise<Manifest> => manifestSchema.parse(JSON.parse(String(await stored(url)))),
    jobDirs: () => readdir(config.MEDIA_WORK_DIR),
    close: async () => {
      await media.close();
      if (!given) await sim.close();
    },
  };
}
export type RunningMedia = Awaited<ReturnType<typeof startMedia>>;

/** A request for a short dose of an uploaded source; every field of the recipe may be replaced. */
export function requestFor(
  source: { sha256: string; location: string | null },
  change: Partial<RecipeInput> = {},
  clips: { sha256: string; location: string | null }[] = [],
): ComposeRequest {
  const recipe = normaliseRecipe(
    aRecipe({
      source: { sha256: source.sha256, startMs: 0, turnMs: 250, endMs: 500 },
      ...{ sets: 1, reps: 2, leadInSeconds: 1, cues: 'beeps' },
      ...change,
    }),
  );
  const assets = new Map(
    [source, ...clips].map(({ sha256, location }) => [sha256, { sha256, location: location ?? '' }]),
  );
  return { renderId: randomUUID(), recipeHash: recipeHash(recipe), recipe, assets: [...assets.values()] };
}

/** Runs ffmpeg to make a fixture and resolves to its path. */
export async function make(dir: string, name: string, args: string[]): Promise<string> {
  const file = join(dir, name);
  await execa(testFfmpeg().ffmpegPath, ['-hide_banner', '-loglevel', 'error', '-nostdin', '-y', ...args, file], {
    timeout: 60_000,
  });
  return file;
}

export async function sha256Of(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

/** Children of a process (this one by default) that run ffmpeg or ffprobe now. */
export async function ffmpegPids(parent = process.pid): Promise<number[]> {
  const tasks = await readdir(`/proc/${parent}/task`);
  const children = await Promise.all(
    tasks.map((task) => readFile(`/proc/${parent}/task/${task}/children`, 'utf8').catch(() => '')),
  );
  const pids = children
    .flatMap((text) => text.trim().split(/\s+/))
    .filter(Boolean)
    .map(Number);
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => /^ff(mpeg|probe)/.test(names[index] ?? ''));
}
