import { type ComposeLine, STAGES } from './contract.ts';

export type Stage = (typeof STAGES)[number];
export type ProgressLine = Extract<ComposeLine, { type: 'progress' }>;

/** Share of the whole that each stage takes, in percent, for a bake whose segments are new. */
const SHARE: Record<Stage, number> = {
  stage: 6,
  segments: 50,
  audio: 14,
  mux: 9,
  verify: 3,
  artefacts: 2,
  store: 10,
  upload: 6,
};

/** Below this a rate cannot be told from noise. */
const MIN_PERCENT_FOR_ETA = 8;

/**
 * Turns what the stages report into lines whose percentage never falls. Stages may run side by side; what counts is how
 * much of each is done.
 */
export class ProgressTracker {
  readonly #emit: (line: ProgressLine) => void;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #done = new Map<Stage, number>();
  #percent = 0;

  constructor(emit: (line: ProgressLine) => void, now: () => number = performance.now.bind(performance)) {
    this.#emit = emit;
    this.#now = now;
    this.#startedAt = now();
  }

  /** Tells that `fraction` (0–1) of a stage is done; a line goes out when that is at least one percent of the whole. */
  at(stage: Stage, fraction: number): void {
    this.#done.set(stage, Math.max(this.#done.get(stage) ?? 0, Math.min(1, fraction)));
    const sum = STAGES.reduce((total, name) => total + SHARE[name] * (this.#done.get(name) ?? 0), 0);
    const percent = Math.max(this.#percent, Math.floor(sum));
    if (percent === this.#percent && fraction > 0) return;
    this.#percent = percent;
    this.#emit({ type: 'progress', stage, percent, etaMs: this.#eta(percent) });
  }

  #eta(percent: number): number | null {
    if (percent < MIN_PERCENT_FOR_ETA) return null;
    return Math.round(((this.#now() - this.#startedAt) / percent) * (100 - percent));
  }
}
