import type { RenderStatus } from './render-states.ts';

/** How long a stage takes, in milliseconds, of those that went through it lately. */
export interface StagePace {
  mean: number;
  p50: number;
  p90: number;
}

export interface Pace {
  /** From the claim to the upload. */
  bake: StagePace;
  /** From the upload until Bunny's video plays. */
  transcode: StagePace;
  /** Bakes under way at once. */
  slots: number;
}

/** A render that has not ended. */
export interface Unfinished {
  status: Exclude<RenderStatus, 'ready' | 'failed'>;
  /** Milliseconds in this status. */
  sinceMs: number;
  /** Renders that are baked before it, while it is pending. */
  ahead: number;
  /** Milliseconds until it may be tried again, while it waits for that. */
  waitMs: number;
}

/** Milliseconds from now: when it will likely be over, and when nine of ten such are. */
export interface Estimate {
  likelyMs: number;
  latestMs: number;
}

/** What lasts longer than it should is expected to end any moment, and not to have ended. */
const ANY_MOMENT_MS = 1_000;

/**
 * When the last of these renders will be ready. Who waits in the queue waits for whole bakes, in each slot one after the
 * other, which together take their mean; the own stages take what half, and what nine tenths, of all took.
 */
export function estimate(renders: readonly Unfinished[], pace: Pace): Estimate {
  const { bake, transcode, slots } = pace;
  const stage = (of: 'p50' | 'p90', { status, sinceMs, ahead, waitMs }: Unfinished): number => {
    const left = (ms: number) => Math.max(ANY_MOMENT_MS, ms - sinceMs);
    switch (status) {
      case 'pending':
        return Math.max(waitMs, (ahead / Math.max(1, slots)) * bake.mean) + bake[of] + transcode[of];
      case 'rendering':
        return left(bake[of]) + transcode[of];
      case 'transcoding':
        return left(transcode[of]);
    }
  };
  const last = (of: 'p50' | 'p90') => renders.reduce((latest, render) => Math.max(latest, stage(of, render)), 0);
  return { likelyMs: Math.round(last('p50')), latestMs: Math.round(last('p90')) };
}
