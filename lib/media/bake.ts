import { join } from 'node:path';
import type { Recipe } from '../domain/recipe.ts';
import type { Timeline } from '../domain/timeline.ts';
import { AppError } from '../errors.ts';
import { type AssetSource, fetchAsset } from './assets.ts';
import { type Clip, prepareClip } from './clips.ts';
import type { ComposeRequest, Warning } from './contract.ts';
import type { DiskCache } from './disk-cache.ts';
import { assemble, encodeUnits } from './picture.ts';
import { planUnits, type SourceFacts } from './plan.ts';
import { type Profile, profilesOf, type Rungs, rungsFor } from './profiles.ts';
import type { ProgressTracker } from './progress.ts';
import { placeSounds, SAMPLES_PER_FRAME, soundedTimeline } from './sounds.ts';
import { makeSoundtrack, type Soundtrack } from './soundtrack.ts';
import { inspectSource } from './source.ts';
import { together } from './together.ts';
import type { Tools } from './tools.ts';
import { checkOpening } from './verify.ts';

export interface BakeDeps {
  tools: Tools;
  cache: DiskCache;
  assets: AssetSource;
}

export interface Baked {
  timeline: Timeline;
  rungs: Rungs;
  /** The finished file of each profile. */
  files: ReadonlyMap<Profile['name'], string>;
  poster: string;
  soundtrack: Soundtrack;
  segments: { encoded: number; reused: number };
  warnings: Warning[];
}

/** Makes every file of a render in `jobDir`, checked, and stores nothing. */
export async function bake(
  deps: BakeDeps,
  request: ComposeRequest,
  jobDir: string,
  progress: ProgressTracker,
  signal: AbortSignal,
): Promise<Baked> {
  const { tools, cache } = deps;
  const { recipe } = request;
  const { source, clips } = await stage(deps, request, jobDir, progress, signal);

  const timeline = soundedTimeline(recipe, clips);
  const units = planUnits(timeline, source);
  const rungs = rungsFor(source.video);
  const profiles = profilesOf(rungs);
  const { sounds, warnings } = placeSounds(recipe, timeline, clips);
  const soundtrackPath = join(jobDir, 'soundtrack.m4a');

  const [encoded, soundtrack] = await together(
    signal,
    (each) =>
      encodeUnits(
        { tools, cache },
        source,
        { units, profiles, jobDir },
        {
          signal: each,
          onProgress: (fraction) => progress.at('segments', fraction),
        },
      ),
    (each) =>
      makeSoundtrack(
        tools,
        { sounds, samples: timeline.frames * SAMPLES_PER_FRAME },
        {
          targetLufs: recipe.loudness,
          path: soundtrackPath,
          signal: each,
          onProgress: (fraction) => progress.at('audio', fraction),
        },
      ),
  );
  progress.at('audio', 1);

  const { frames } = timeline;
  const files = new Map(profiles.map((profile) => [profile.name, join(jobDir, `${profile.name}.mp4`)]));
  const outputs = profiles.map((profile) => ({ profile, path: fileOf(files, profile) }));
  await assemble(tools, { units, encoded, soundtrack: soundtrackPath, frames }, outputs, signal);
  progress.at('mux', 1);

  const poster = join(jobDir, 'poster.jpg');
  await checkOpening(tools, fileOf(files, rungs.master), { frame: posterFrame(timeline), path: poster }, signal);
  progress.at('verify', 1);
  progress.at('artefacts', 1);

  return {
    ...{ timeline, rungs, files, poster, soundtrack },
    segments: { encoded: encoded.encoded, reused: encoded.reused },
    warnings: [...warnings, ...soundtrack.warnings],
  };
}

export function fileOf(files: ReadonlyMap<Profile['name'], string>, profile: Profile): string {
  const file = files.get(profile.name);
  if (file === undefined) throw new Error(`no file was made in ${profile.name}`);
  return file;
}

async function stage(
  { tools, cache, assets }: BakeDeps,
  request: ComposeRequest,
  jobDir: string,
  progress: ProgressTracker,
  signal: AbortSignal,
): Promise<{ source: SourceFacts & { path: string }; clips: Map<string, Clip> }> {
  const { recipe } = request;
  progress.at('stage', 0);
  const locations = new Map(request.assets.map((asset) => [asset.sha256, asset]));
  const localPath = (sha256: string) => join(jobDir, `asset-${sha256}`);
  const contents = [...new Set([recipe.source.sha256, ...spokenClips(recipe).map(([, sha256]) => sha256)])];
  await together(
    signal,
    ...contents.map((sha256) => async (each: AbortSignal) => {
      const asset = locations.get(sha256);
      if (!asset) throw new AppError('invalid_request', { detail: `no location for ${sha256}` });
      await fetchAsset(assets, asset, localPath(sha256), each);
    }),
  );
  progress.at('stage', 0.5);

  const source = { path: localPath(recipe.source.sha256), sha256: recipe.source.sha256 };
  const [facts, ...clips] = await together(
    signal,
    (each) => inspectSource(tools, cache, source, jobDir, each),
    ...spokenClips(recipe).map(([name, sha256]) => async (each: AbortSignal): Promise<[string, Clip]> => {
      return [name, await prepareClip(tools, cache, { name, path: localPath(sha256), sha256 }, jobDir, each)];
    }),
  );
  progress.at('stage', 1);
  return { source: { ...facts, path: source.path }, clips: new Map(clips) };
}

/** The voice clips that a recipe uses, by cue name. */
export const spokenClips = (recipe: Recipe) => (recipe.cues === 'voice' ? Object.entries(recipe.clips) : []);

/** The turning point of the first repetition shows the exercise best. */
function posterFrame(timeline: Timeline): number {
  const moving = timeline.segments.find(({ picture }) => picture.type === 'clip');
  return moving ? moving.startFrame + moving.frames - 1 : 0;
}
