import { type Random, randomOf } from './random.ts';

export const EDGES = ['edge-1', 'edge-2'] as const;
export const WORKERS = ['worker-1', 'worker-2', 'worker-3'] as const;
export const MEDIA = ['media-1', 'media-2'] as const;
type Worker = (typeof WORKERS)[number];
type Media = (typeof MEDIA)[number];
export type Member = (typeof EDGES)[number] | Worker | Media;

/** What `POST /sim/faults` takes. */
type Faults = Readonly<Record<string, unknown>>;

/** One thing that goes wrong. What lasts says for how long, and is taken back after it. */
export type Action =
  | { kind: 'kill'; target: Member; signal: 'SIGKILL' | 'SIGTERM' }
  /**
   * Stopped while it holds a render, and woken once somebody else has taken that over: a zombie. Either the whole process,
   * or only what it has to say to Postgres, which then comes late.
   */
  | { kind: 'wedge'; target: Worker; what: 'process' | 'statements' }
  | { kind: 'flush' }
  /** Dies and comes back by itself with what its append-only file kept. */
  | { kind: 'redis-kill' }
  | { kind: 'redis-down'; forMs: number }
  | { kind: 'redis-hang'; forMs: number }
  | { kind: 'postgres-restart'; mode: 'fast' | 'immediate' }
  /** Restarted with room for one bake, and later with all of it. */
  | { kind: 'less-media'; target: Media; forMs: number }
  | { kind: 'disk-full'; target: Media; forMs: number }
  | { kind: 'bunny'; what: string; on: Faults; off: Faults; forMs: number };

export type Timed = Action & { atMs: number };

const kill = (target: Member, signal: 'SIGKILL' | 'SIGTERM'): Action => ({ kind: 'kill', target, signal });

/** Faults that are armed a number of times, for long enough to meet an upload; what has not struck by the end is disarmed. */
const times = (name: string, count: number, forMs: number, more: Faults = {}): Action => {
  const [outer = '', inner] = name.split('.');
  const nest = (value: unknown): Faults => (inner ? { [outer]: { ...more, [inner]: value } } : { [outer]: value });
  return { kind: 'bunny', what: name, on: nest({ count }), off: nest(false), forMs };
};

const rate = (name: 'rate429' | 'rate5xx', share: number, forMs: number): Action => ({
  kind: 'bunny',
  what: name,
  on: { [name]: share, retryAfterSeconds: 1 },
  off: { [name]: 0 },
  forMs,
});

/** One of everything; the seed says who is hit, how long and in which order. */
function deckOf(random: Random): Action[] {
  const seconds = (min: number, max: number) => random.int(min * 10, max * 10) * 100;
  const holdMs = 1_500;
  return [
    kill(random.pick(WORKERS), 'SIGKILL'),
    kill(random.pick(WORKERS), 'SIGKILL'),
    kill(random.pick(WORKERS), 'SIGTERM'),
    kill(random.pick(MEDIA), 'SIGKILL'),
    kill(random.pick(MEDIA), 'SIGTERM'),
    kill(random.pick(EDGES), 'SIGKILL'),
    kill(random.pick(EDGES), 'SIGTERM'),
    { kind: 'wedge', target: random.pick(WORKERS), what: 'process' },
    { kind: 'wedge', target: random.pick(WORKERS), what: 'statements' },
    { kind: 'flush' },
    { kind: 'redis-kill' },
    { kind: 'redis-down', forMs: seconds(1, 4) },
    { kind: 'redis-hang', forMs: seconds(1, 4) },
    { kind: 'postgres-restart', mode: 'fast' },
    { kind: 'postgres-restart', mode: 'immediate' },
    { kind: 'less-media', target: random.pick(MEDIA), forMs: seconds(4, 8) },
    { kind: 'disk-full', target: random.pick(MEDIA), forMs: seconds(2, 5) },
    {
      kind: 'bunny',
      what: 'webhooks.off',
      on: { webhooks: { off: true } },
      off: { webhooks: { off: false } },
      forMs: seconds(2, 6),
    },
    times('webhooks.lost', random.int(3, 10), seconds(12, 24)),
    times('webhooks.doubled', random.int(3, 10), seconds(12, 24)),
    times('webhooks.reordered', random.int(2, 4), seconds(12, 24)),
    times('webhooks.early', random.int(1, 3), seconds(12, 24)),
    times('webhooks.forged', random.int(1, 3), seconds(12, 24)),
    {
      kind: 'bunny',
      what: 'webhooks.late',
      on: { webhooks: { late: 2_000 } },
      off: { webhooks: { late: 0 } },
      forMs: seconds(3, 6),
    },
    rate('rate5xx', 0.4, seconds(2, 5)),
    rate('rate429', 0.4, seconds(2, 5)),
    times('acceptThenTimeout.create', 1, seconds(12, 24), { holdMs }),
    times('acceptThenTimeout.upload', 1, seconds(12, 24), { holdMs }),
    {
      kind: 'bunny',
      what: 'searchRefused',
      on: { searchRefused: true },
      off: { searchRefused: false },
      forMs: seconds(3, 8),
    },
    {
      kind: 'bunny',
      what: 'eventualListing',
      on: { eventualListing: 2_000 },
      off: { eventualListing: false },
      forMs: seconds(3, 8),
    },
    times('missingVideo', 1, seconds(12, 24)),
    times('truncatedFinish', 1, seconds(12, 24)),
  ];
}

/** Between two actions, on average: enough for the one to be felt before the next, not so much that it has healed. */
const MEAN_GAP_MS = 4_000;
/** A run too short for those gaps has so many actions in it all the same. */
const FEWEST_ACTIONS = 8;
const FIRST_AT_MS = 1_500;

/**
 * Everything that goes wrong in a run of `minutes`, in order: a pure function of its arguments. As much of the deck as
 * there is time for is played in the seed's order; a long run plays it again, shuffled anew. Nothing lasts beyond the end.
 */
export function scriptOf(seed: number, minutes: number): Timed[] {
  const random = randomOf(seed);
  const untilMs = minutes * 60_000;
  const gapMs = Math.min(MEAN_GAP_MS, untilMs / FEWEST_ACTIONS);
  const script: Timed[] = [];
  let deck: Action[] = [];
  for (let atMs = FIRST_AT_MS; atMs < untilMs; atMs += Math.round(gapMs * (0.5 + random.next()))) {
    if (deck.length === 0) deck = random.shuffled(deckOf(random));
    const action = deck.pop();
    if (action && 'forMs' in action) script.push({ ...action, forMs: Math.min(action.forMs, untilMs - atMs), atMs });
    else if (action) script.push({ ...action, atMs });
  }
  return script;
}

/** An action in a few words, for the log and the report. */
export function sayAction(action: Action): string {
  switch (action.kind) {
    case 'kill':
      return `${action.signal} ${action.target}`;
    case 'wedge':
      return action.what === 'process'
        ? `SIGSTOP ${action.target} beyond its lease`
        : `what ${action.target} says to Postgres comes after its lease`;
    case 'flush':
      return 'FLUSHALL';
    case 'redis-kill':
      return 'SIGKILL Redis';
    case 'redis-down':
      return `Redis away for ${action.forMs} ms`;
    case 'redis-hang':
      return `Redis silent for ${action.forMs} ms`;
    case 'postgres-restart':
      return `Postgres restarted (${action.mode})`;
    case 'less-media':
      return `${action.target} with room for one bake, for ${action.forMs} ms`;
    case 'disk-full':
      return `disk of ${action.target} full for ${action.forMs} ms`;
    case 'bunny':
      return `Bunny: ${action.what} for ${action.forMs} ms`;
  }
}
