import { join } from 'node:path';
import type { Recipe } from '../domain/recipe.ts';
import { msOfFrame } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import { OWN_FORMATS } from '../ffmpeg/argv.ts';
import { probe } from '../ffmpeg/probe.ts';
import { ArtefactWriter, artefactPath, publicUrl } from './artefacts.ts';
import { fetchAsset } from './assets.ts';
import { spokenClips } from './bake.ts';
import { type Clip, prepareClip } from './clips.ts';
import type { ComposeDeps } from './compose.ts';
import type { RebuildAnswer, RebuildRequest } from './contract.ts';
import { withJobDir } from './job-dir.ts';
import { buildManifest, type Manifest, type StoredFile } from './manifest.ts';
import { checkRecipe } from './request.ts';
import { soundedTimeline } from './sounds.ts';
import { measureFile } from './soundtrack.ts';
import { fileName, type SizeOf, storedFiles } from './stored-files.ts';
import { together } from './together.ts';

export interface RebuildOptions extends RebuildRequest {
  recipe: Recipe;
  dryRun: boolean;
}

type Files = Pick<Manifest, 'master' | 'baselines' | 'poster' | 'captions'>;

/**
 * Puts the manifest of a finished render together again and stores it: the timeline from the recipe, the files from
 * what the zone holds, size and loudness from the master itself. Where the toolchain is the same the document is the
 * one that was lost, byte for byte; else it names the toolchain of this service. Nothing is stored where a file that it
 * would name is missing, or where the master is not as long as the row says. Throws what storage and ffmpeg throw, and
 * `asset_unavailable` for a voice clip that is gone.
 */
export function rebuildManifest(
  deps: ComposeDeps,
  request: RebuildOptions,
  signal: AbortSignal,
): Promise<RebuildAnswer> {
  checkRecipe(request.recipe, request.recipeHash);
  return withJobDir(deps.workDir, async (jobDir) => {
    const { recipe, masterSha256 } = request;
    const timeline = soundedTimeline(recipe, await stageClips(deps, request, jobDir, signal));
    const sizeOf = await storedFiles(deps.storage, request.recipeHash, signal);
    const { files, missing } = await filesOf(deps, request, sizeOf);
    if (msOfFrame(timeline.frames) !== request.durationMs) missing.push('a master of this length');
    if (missing.length > 0) return { outcome: 'incomplete', missing };

    const path = join(jobDir, 'master.mp4');
    if (!(await fetchMaster(deps, request, files.master.bytes, path, signal))) {
      return { outcome: 'incomplete', missing: [`${masterSha256}.mp4`] };
    }
    const { ffprobePath, probeTimeoutMs: timeoutMs } = deps.tools;
    const { video } = await probe({ ffprobePath, path, timeoutMs, formats: OWN_FORMATS, signal });
    if (!video) return { outcome: 'incomplete', missing: [`a picture in ${masterSha256}.mp4`] };
    const { lufs, truePeakDb } = await measureFile(deps.tools, path, signal);
    const finite = (value: number) => (Number.isFinite(value) ? value : null);
    const manifest = buildManifest({
      ...{ recipeHash: request.recipeHash, recipe, timeline, toolchain: deps.tools.fingerprint },
      files: { ...files, master: { width: video.width, height: video.height, ...files.master } },
      quality: {
        lufs: finite(lufs),
        truePeakDb: finite(truePeakDb),
        targetLufs: recipe.loudness,
        warnings: request.warnings,
      },
    });
    if (!request.dryRun) await new ArtefactWriter(deps, request.recipeHash, signal, () => {}).manifest(manifest);
    return { outcome: 'rebuilt' };
  });
}

async function stageClips(
  { tools, cache, assets }: ComposeDeps,
  request: RebuildOptions,
  jobDir: string,
  signal: AbortSignal,
): Promise<Map<string, Clip>> {
  const locations = new Map(request.assets.map((asset) => [asset.sha256, asset]));
  const clips = await together(
    signal,
    ...spokenClips(request.recipe).map(([name, sha256]) => async (each: AbortSignal): Promise<[string, Clip]> => {
      const asset = locations.get(sha256);
      if (!asset) throw new AppError('invalid_request', { detail: `no location for ${sha256}` });
      const path = join(jobDir, `clip-${name}`);
      await fetchAsset(assets, asset, path, each);
      return [name, await prepareClip(tools, cache, { name, path, sha256 }, jobDir, each)];
    }),
  );
  return new Map(clips);
}

/** What the row names, as the zone has it; everything that is not there, or not of the size that the row says. */
async function filesOf(
  { cdnUrl }: ComposeDeps,
  request: RebuildOptions,
  sizeOf: SizeOf,
): Promise<{ files: Omit<Files, 'master'> & { master: StoredFile }; missing: string[] }> {
  const missing: string[] = [];
  const stored = async (sha256: string, extension: 'mp4' | 'jpg' | 'vtt', wanted?: number): Promise<StoredFile> => {
    const name = `${sha256}.${extension}`;
    const bytes = await sizeOf(name);
    if (bytes === undefined || (wanted !== undefined && bytes !== wanted)) missing.push(name);
    return { url: publicUrl(cdnUrl, artefactPath(request.recipeHash, sha256, extension)), sha256, bytes: bytes ?? 0 };
  };
  const shaIn = (url: string) => fileName(url).replace(/\.[a-z0-9]+$/, '');
  const baselines: Files['baselines'] = [];
  for (const { name, width, height, sha256, bytes } of request.baselines) {
    baselines.push({ name, width, height, ...(await stored(sha256, 'mp4', bytes)) });
  }
  return {
    files: {
      master: await stored(request.masterSha256, 'mp4'),
      baselines,
      poster: await stored(shaIn(request.posterUrl), 'jpg'),
      captions: request.captionsUrl === null ? null : await stored(shaIn(request.captionsUrl), 'vtt'),
    },
    missing,
  };
}

/** False where the master is not there after all, or its bytes are not those of its name. */
async function fetchMaster(
  { storage }: ComposeDeps,
  { recipeHash, masterSha256 }: RebuildOptions,
  maxBytes: number,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const object = artefactPath(recipeHash, masterSha256, 'mp4');
    await storage.getToFile(object, path, { maxBytes, sha256: masterSha256, signal });
    return true;
  } catch (error) {
    if (error instanceof AppError && ['not_found', 'asset_corrupt', 'source_too_large'].includes(error.code))
      return false;
    throw error;
  }
}
