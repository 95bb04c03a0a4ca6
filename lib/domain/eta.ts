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

/** When it will be over, as it is told: milliseconds since the epoch. */
export interface Told {
  likely: number;
  latest: number;
}

const MINUTE_MS = 60_000;
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

/**
 * The times to tell of an estimate made at `now`, given what was told last. Whoever waits is woken by every change of them,
 * and no two estimates are alike: so they are whole steps, coarser the further away they are, and what was told stands as
 * long as it is still to come and within half a step of what would be told now. Never in the past.
 */
export function tell({ likelyMs, latestMs }: Estimate, now: number, last: Told | null): Told {
  const likely = settle(now + likelyMs, now, last?.likely);
  return { likely, latest: Math.max(likely, settle(now + latestMs, now, last?.latest)) };
}

/** `last` may lie before the estimate by half a step: rounded up, a time needs to move by as much to be told anew. */
function settle(at: number, now: number, last: number | undefined): number {
  const step = stepOf(at - now);
  const stands = last !== undefined && last > now && last >= at - step / 2 && last <= at + (3 / 2) * step;
  return stands ? last : Math.ceil(at / step) * step;
}

/** The difference that is worth telling of what is so far away, in milliseconds. */
export function stepOf(awayMs: number): number {
  if (awayMs <= 2 * MINUTE_MS) return 10_000;
  if (awayMs <= 10 * MINUTE_MS) return 30_000;
  return awayMs <= 60 * MINUTE_MS ? 2 * MINUTE_MS : 10 * MINUTE_MS;
}
