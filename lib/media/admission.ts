import { AppError } from '../errors.ts';

/** What one work takes where none has ended yet. */
const FIRST_GUESS_MS = 20_000;
/** Works that the guess is made from. */
const REMEMBERED = 20;
const LONGEST_RETRY_MS = 60_000;

/** How many works may run at once. There is no queue: who finds it full is told when to come back. */
export class Admission {
  readonly slots: number;
  readonly #durationsMs: number[] = [];
  #busy = 0;
  #draining = false;
  #waiters: (() => void)[] = [];

  constructor(slots: number) {
    this.slots = slots;
  }

  get busy(): number {
    return this.#busy;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** From now on everything new is turned away. */
  drain(): void {
    this.#draining = true;
  }

  /** Throws `media_draining` or `media_busy`, with the time after which a slot should be free. */
  assertOpen(): void {
    if (this.#draining) throw new AppError('media_draining', { retryAfterMs: 5_000 });
    if (this.#busy >= this.slots) throw new AppError('media_busy', { retryAfterMs: this.#retryAfterMs() });
  }

  /** Takes a slot, or throws as `assertOpen` does. The function returned gives it back, once. */
  enter(): () => void {
    this.assertOpen();
    this.#busy += 1;
    const startedAt = performance.now();
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#busy -= 1;
      this.#durationsMs.push(performance.now() - startedAt);
      if (this.#durationsMs.length > REMEMBERED) this.#durationsMs.shift();
      if (this.#busy === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    };
  }

  /** Resolves when nothing is under way. */
  whenIdle(): Promise<void> {
    return this.#busy === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiters.push(resolve));
  }

  #retryAfterMs(): number {
    const known = this.#durationsMs;
    const mean = known.length === 0 ? FIRST_GUESS_MS : known.reduce((a, b) => a + b, 0) / known.length;
    return Math.min(LONGEST_RETRY_MS, Math.max(1_000, mean / this.slots));
  }
}
