import { join } from 'node:path';
import type { StorageClient } from '../bunny/storage-client.ts';
import type { StreamClient } from '../bunny/stream-client.ts';
import type { Logger } from '../log.ts';
import { type ArtefactStore, ArtefactWriter, artefactPath, manifestPath, publicUrl } from './artefacts.ts';
import type { AssetSource } from './assets.ts';
import { type Baked, bake, fileOf } from './bake.ts';
import { captions } from './captions.ts';
import type { Baseline, ComposeDone, ComposeLine, ComposeRequest } from './contract.ts';
import type { DiskCache } from './disk-cache.ts';
import { withJobDir } from './job-dir.ts';
import { buildManifest, type Manifest } from './manifest.ts';
import { ProgressTracker } from './progress.ts';
import { publishVideo } from './publish.ts';
import { findStored } from './resume.ts';
import type { Tools } from './tools.ts';
import { videoTitle } from './video-title.ts';

export interface ComposeDeps {
  tools: Tools;
  cache: DiskCache;
  storage: StorageClient;
  stream: StreamClient;
  assets: AssetSource;
  /** In here every bake has a folder of its own, for as long as it lasts. */
  workDir: string;
  /** Public base URL of the storage zone. */
  cdnUrl: string;
  /** What the titles of our videos begin with. */
  titlePrefix: string;
  log: Logger;
}

export interface ComposeEvents {
  /** Aborting it ends every process and transfer of this bake. */
  signal: AbortSignal;
  /** Called with every line but the last. */
  emit: (line: ComposeLine) => void;
}

/**
 * Bakes a render, stores its artefacts (the manifest last, so that it never names what is not there) and gives the master
 * to Bunny Stream. What an earlier attempt reached is used where storage and Bunny still have it. Resolves to the last
 * line; throws `AppError`. Nothing of it runs on, and its folder is gone, when it ends.
 */
export function composeRender(
  deps: ComposeDeps,
  request: ComposeRequest,
  { signal, emit }: ComposeEvents,
): Promise<ComposeDone> {
  return withJobDir(deps.workDir, async (jobDir) => {
    const progress = new ProgressTracker(emit);
    const { recipeHash, resume } = request;
    const stored = await findStored(deps.storage, recipeHash, resume?.masterSha256, signal);
    if (stored) return adopt(deps, request, stored, jobDir, { signal, emit });

    const baked = await bake(deps, request, jobDir, progress, signal);
    const { manifest, manifestUrl } = await store(deps, request, baked, progress, { signal, emit });
    const masterFile = fileOf(baked.files, baked.rungs.master);
    const video = await publish(deps, request, manifest, { master: async () => masterFile, signal, emit });
    progress.at('upload', 1);
    return doneLine(manifest, manifestUrl, video, { segments: baked.segments, resumed: false });
  });
}

/** Everything is stored: only the video may still need its bytes, or be needed anew. */
async function adopt(
  deps: ComposeDeps,
  request: ComposeRequest,
  manifest: Manifest,
  jobDir: string,
  { signal, emit }: ComposeEvents,
): Promise<ComposeDone> {
  const { sha256 } = manifest.master;
  const video = await publish(deps, request, manifest, {
    master: async () => {
      const file = join(jobDir, 'master.mp4');
      const path = artefactPath(request.recipeHash, sha256, 'mp4');
      await deps.storage.getToFile(path, file, { maxBytes: manifest.master.bytes, sha256, signal });
      return file;
    },
    ...{ signal, emit },
  });
  const manifestUrl = publicUrl(deps.cdnUrl, manifestPath(request.recipeHash));
  return doneLine(manifest, manifestUrl, video, { segments: { encoded: 0, reused: 0 }, resumed: true });
}

async function store(
  deps: ComposeDeps,
  { recipe, recipeHash }: ComposeRequest,
  baked: Baked,
  progress: ProgressTracker,
  { signal, emit }: ComposeEvents,
): Promise<{ manifest: Manifest; manifestUrl: string }> {
  const { rungs, files, soundtrack, timeline } = baked;
  const artefacts: ArtefactStore = { storage: deps.storage, cdnUrl: deps.cdnUrl };
  const steps = 4 + rungs.baselines.length;
  let stored = 0;
  const writer = new ArtefactWriter(artefacts, recipeHash, signal, (line) => {
    emit(line);
    progress.at('store', ++stored / steps);
  });

  const text = captions(timeline);
  const captionsFile = text === undefined ? null : await writer.text('captions', text, 'vtt');
  const poster = await writer.file('poster', baked.poster, 'jpg');
  const baselines: Baseline[] = [];
  for (const profile of rungs.baselines) {
    const { name, width, height } = profile;
    baselines.push({ name, width, height, ...(await writer.file('baseline', fileOf(files, profile), 'mp4')) });
  }
  const { width, height } = rungs.master;
  const master = { width, height, ...(await writer.file('master', fileOf(files, rungs.master), 'mp4')) };
  const finite = (value: number) => (Number.isFinite(value) ? value : null);
  const manifest = buildManifest({
    ...{ recipeHash, recipe, timeline, toolchain: deps.tools.fingerprint },
    files: { master, baselines, poster, captions: captionsFile },
    quality: {
      lufs: finite(soundtrack.lufs),
      truePeakDb: finite(soundtrack.truePeakDb),
      targetLufs: recipe.loudness,
      warnings: baked.warnings,
    },
  });
  const { url } = await writer.manifest(manifest);
  progress.at('store', 1);
  return { manifest, manifestUrl: url };
}

function publish(
  { stream, titlePrefix }: ComposeDeps,
  { recipeHash, resume, collection }: ComposeRequest,
  { master: { sha256 } }: Manifest,
  { master, signal, emit }: { master: () => Promise<string> } & ComposeEvents,
) {
  // A video made for other bytes must not be given these.
  const before = resume?.masterSha256 === sha256 ? resume : undefined;
  return publishVideo(stream, {
    title: videoTitle(titlePrefix, recipeHash),
    ...{ masterSha256: sha256, collection, master, signal },
    existingGuid: before?.videoGuid,
    givenUp: before !== undefined && before.videoGuid === undefined,
    onVideo: (video) => emit({ type: 'video', ...video, masterSha256: sha256 }),
  });
}

function doneLine(
  manifest: Manifest,
  manifestUrl: string,
  video: { guid: string; collectionId: string | null },
  how: Pick<ComposeDone, 'segments' | 'resumed'>,
): ComposeDone {
  return {
    type: 'done',
    masterSha256: manifest.master.sha256,
    videoGuid: video.guid,
    collectionId: video.collectionId,
    durationMs: manifest.durationMs,
    manifestUrl,
    captionsUrl: manifest.captions?.url ?? null,
    posterUrl: manifest.poster.url,
    baselines: manifest.baselines,
    warnings: manifest.quality.warnings,
    ...how,
  };
}
