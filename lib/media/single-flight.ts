import { AppError } from '../errors.ts';

interface Flight<T> {
  result: Promise<T>;
  controller: AbortController;
  waiting: number;
}

/**
 * Work that several may want at once and that is done once. Each waits under its own signal: one that leaves takes
 * nothing from the others, and the work is stopped when the last one has left.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** Joins the work under way for `key`, or starts it. Throws `aborted` once `signal` says so and, for the last to leave, the work has ended. */
  async join(key: string, signal: AbortSignal, start: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (signal.aborted) throw new AppError('aborted');
    const flight = this.#flights.get(key) ?? this.#begin(key, start);
    flight.waiting += 1;
    let onAbort: (() => void) | undefined;
    const left = new Promise<never>((_, reject) => {
      onAbort = () => {
        flight.waiting -= 1;
        const stopped = flight.waiting === 0 ? this.#stop(key, flight) : Promise.resolve();
        void stopped.then(() => reject(new AppError('aborted')));
      };
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([flight.result, left]);
    } catch (error) {
      // What was stopped for the last to leave ends with some error of its own.
      throw signal.aborted ? new AppError('aborted', { cause: error }) : error;
    } finally {
      if (onAbort) signal.removeEventListener('abort', onAbort);
    }
  }

  #begin(key: string, start: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const result = start(controller.signal);
    const flight = { result, controller, waiting: 0 };
    this.#flights.set(key, flight);
    const forget = () => {
      // Only itself: a stopped flight may have been followed by another.
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    result.then(forget, forget);
    return flight;
  }

  /** Nobody may join a flight that is being stopped. */
  async #stop(key: string, flight: Flight<T>): Promise<void> {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
    flight.controller.abort();
    await flight.result.catch(() => undefined);
  }
}
