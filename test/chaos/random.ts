/** A source of chance that always tells the same story for the same seed. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number;
  pick<T>(from: readonly T[]): T;
  shuffled<T>(from: readonly T[]): T[];
}

/** Mulberry32: 32 bits of state are plenty for a few hundred draws, and it is the same on every machine. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    int,
    pick: (from) => {
      const chosen = from[int(0, from.length - 1)];
      if (chosen === undefined) throw new RangeError('nothing to pick from');
      return chosen;
    },
    shuffled: (from) => {
      const deck = [...from];
      for (let at = deck.length - 1; at > 0; at--) {
        const other = int(0, at);
        const held = deck[at];
        deck[at] = deck[other] as typeof held & {};
        deck[other] = held as typeof held & {};
      }
      return deck;
    },
  };
}
