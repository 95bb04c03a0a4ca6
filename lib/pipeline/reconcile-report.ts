/** What reconcile did, or with `--dry-run` would do, to a render. */
export const REPAIRS = [
  /** Bunny had finished long ago. */
  'ready',
  /** Bunny could not transcode it. */
  'failed',
  /** The video is gone or never got its bytes: baked again, or failed, as the backstop decides. */
  'lost',
  /** It was ready, and its video is gone or failed: a new generation with a new video. */
  'new-video',
  /** It was ready, and its manifest was not what it should be: put together again. */
  'manifest',
  /** It was ready, and more than its manifest is missing: a new generation that keeps the video. */
  'rebake',
  /** The collection its video is in was not noted. */
  'collection',
] as const;
export type Repair = (typeof REPAIRS)[number];

/** Why something that looks wrong, or is nobody's, was left as it is. */
export const LEFT = [
  /** Bunny is still at work on the video. */
  'in-flight',
  /** The upload ended a moment ago: Bunny may not show its bytes yet. */
  'just-uploaded',
  /** A render that waits or is being baked names a video that is gone: its next attempt makes another. */
  'attempt-to-come',
  /** The row had moved on when it was to be mended. */
  'moved-on',
  /** So many new generations were started that something else must be wrong. */
  'rebake-limit',
  /** So many videos have no render that something else must be wrong: none of them was deleted. */
  'deletion-limit',
  /** A video that is not of our making. */
  'foreign-video',
  /** A video without a render, younger than the grace period. */
  'within-grace',
  /** A video without a render of which Bunny does not tell the age. */
  'age-unknown',
  /** A video without a render, whose hash is being baked. */
  'leased',
  /** A stored render that no row knows. */
  'stored-without-render',
] as const;
export type Left = (typeof LEFT)[number];

/** What could not be examined or done because somebody did not answer. */
export const FAILURES = ['video', 'artefacts', 'manifest', 'deletion', 'video-list', 'storage-list'] as const;
export type Failure = (typeof FAILURES)[number];

export interface ReconcileReport {
  dryRun: boolean;
  /** False where it broke off: what is not counted was not looked at. */
  complete: boolean;
  seen: { renders: number; videos: number; stored: number };
  repaired: Record<Repair, number>;
  deleted: number;
  left: Record<Left, number>;
  failed: Record<Failure, number>;
}

/** One thing done, or planned. */
export interface ReconcileAction {
  do: Repair | 'delete';
  renderId?: string;
  recipeHash?: string;
  videoGuid: string;
  detail?: string;
}

const zeros = <T extends string>(names: readonly T[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<T, number>;

export const emptyReport = (dryRun: boolean): ReconcileReport => ({
  dryRun,
  complete: true,
  seen: { renders: 0, videos: 0, stored: 0 },
  repaired: zeros(REPAIRS),
  deleted: 0,
  left: zeros(LEFT),
  failed: zeros(FAILURES),
});

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, count) => total + count, 0);

/** How much was changed, or would be. */
export const changesOf = ({ repaired, deleted }: ReconcileReport) => sum(repaired) + deleted;

/** Whether everything there is was looked at and what had to be done was done. */
export const isThorough = ({ complete, failed }: ReconcileReport) => complete && sum(failed) === 0;
