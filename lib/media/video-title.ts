/** Titles carry so much of the recipe hash: enough to be unique, short enough to be read in Bunny's own lists. */
const HASH_CHARS = 32;

/** What a video is called at Bunny: `prefix` tells the installations apart that share a library. */
export const videoTitle = (prefix: string, recipeHash: string) => `${prefix} ${recipeHash.slice(0, HASH_CHARS)}`;

/** The piece of the recipe hash in a title of ours; null for every other title, also for another installation's. */
export function hashInTitle(prefix: string, title: string): string | null {
  const hash = title.slice(prefix.length + 1);
  return /^[0-9a-f]+$/.test(hash) && hash.length === HASH_CHARS && title === videoTitle(prefix, hash) ? hash : null;
}
