import { applyMove, MOVES, type MoveName, type RenderLife, type RenderStatus } from './render-states.ts';

/** One entry of a render's history, as the rules need it; `leaseToken` is the token that the writer carried. */
export interface HistoryEvent {
  generation: number;
  fromStatus: RenderStatus | null;
  toStatus: RenderStatus;
  attempt: number;
  cause: string;
  leaseToken: string | null;
}

export type HistoryRule =
  /** The first event makes the row: pending, generation 0, no attempts. */
  | 'birth'
  /** Every event begins where the one before it ended. */
  | 'chain'
  /** From and to are a pair that the table of moves knows. */
  | 'move'
  /** The generation goes up by one with a requeue and never otherwise. */
  | 'generation'
  /** The attempts change as the move says. */
  | 'attempts'
  /** Every claim has a token of its own, and what needs a lease carries that of the last claim. */
  | 'fence'
  /** The row is where its last event left it. */
  | 'row';

export interface HistoryViolation {
  rule: HistoryRule;
  /** The place of the event among those given; for the row's own rule the number of events. */
  index: number;
  sentence: string;
}

export interface HistoryOptions {
  /** False where old events may have been pruned: then the first one given need not be the row's birth. */
  whole: boolean;
  /** The row as it was read together with the events. */
  row?: RenderLife;
}

const NAMES = Object.keys(MOVES) as MoveName[];

const isFenced = (name: MoveName) => 'fenced' in MOVES[name];

/**
 * Holds the history of one render, in the order in which it was written, against the table of moves. Empty: nothing
 * happened that may not happen, and no writer wrote under a lease that was not its own.
 */
export function historyViolations(events: readonly HistoryEvent[], { whole, row }: HistoryOptions): HistoryViolation[] {
  const violations: HistoryViolation[] = [];
  const fence = createFence();
  for (const [index, event] of events.entries()) {
    const say = (rule: HistoryRule, sentence: string) =>
      violations.push({ rule, index, sentence: `${tell(event)} ${sentence}` });
    const before = events[index - 1];
    if (event.fromStatus === null || (!before && whole)) {
      if (before || !isBirth(event)) say('birth', 'is no birth of a render');
      continue;
    }
    if (before && before.toStatus !== event.fromStatus)
      say('chain', `follows an event that left it ${before.toStatus}`);
    const pairs = NAMES.filter((name) => leads(name, event.fromStatus, event.toStatus));
    const moves = before ? pairs.filter((name) => explains(name, before, event)) : pairs;
    if (pairs.length === 0) say('move', 'is not a move');
    else if (before && moves.length === 0)
      say(miscounted(pairs, before, event), `follows generation ${before.generation}, attempt ${before.attempt}`);
    const broken = pairs.includes('claim') ? fence.claim(event.leaseToken) : fence.write(event.leaseToken, moves);
    if (broken) say('fence', broken);
  }
  if (row) violations.push(...rowViolations(row, events.at(-1), { whole, index: events.length }));
  return violations;
}

/** Follows who held the render. Each step answers what is wrong with it, if anything. */
function createFence() {
  const tokens = new Set<string>();
  /** Of the last claim; undefined before the first one that is known. */
  let held: string | null | undefined;
  return {
    claim(token: string | null): string | null {
      held = token;
      if (token === null) return 'carries no token';
      if (tokens.has(token)) return 'carries the token of an earlier claim';
      tokens.add(token);
      return null;
    },
    /** `moves`: those that the event can have been; none where that is a violation of its own. */
    write(token: string | null, moves: readonly MoveName[]): string | null {
      if (token === null) return moves.length > 0 && moves.every(isFenced) ? 'carries no token' : null;
      if (held !== undefined && token !== held) return `carries ${token}, the last claim ${held ?? 'no token'}`;
      return moves.length > 0 && !moves.some(isFenced) ? 'carries a token and needs none' : null;
    },
  };
}

const isBirth = ({ fromStatus, toStatus, generation, attempt }: HistoryEvent) =>
  fromStatus === null && toStatus === 'pending' && generation === 0 && attempt === 0;

const leads = (name: MoveName, from: RenderStatus | null, to: RenderStatus) =>
  MOVES[name].to === to && MOVES[name].from.some((status) => status === from);

const lifeAfter = (event: HistoryEvent): RenderLife => ({
  status: event.toStatus,
  generation: event.generation,
  attempts: event.attempt,
});

/** What the move makes of the counts that the event before left; where the chain is broken, of its own status. */
const applied = (name: MoveName, before: HistoryEvent, event: HistoryEvent) =>
  applyMove({ ...lifeAfter(before), status: event.fromStatus ?? before.toStatus }, name);

function explains(name: MoveName, before: HistoryEvent, event: HistoryEvent): boolean {
  const after = applied(name, before, event);
  return after !== null && after.generation === event.generation && after.attempts === event.attempt;
}

const miscounted = (names: readonly MoveName[], before: HistoryEvent, event: HistoryEvent): HistoryRule =>
  names.some((name) => applied(name, before, event)?.generation === event.generation) ? 'attempts' : 'generation';

function rowViolations(
  row: RenderLife,
  last: HistoryEvent | undefined,
  { whole, index }: { whole: boolean; index: number },
): HistoryViolation[] {
  if (!last) return whole ? [{ rule: 'birth', index, sentence: 'the row has no history' }] : [];
  if (last.toStatus === row.status && last.generation === row.generation && last.attempt === row.attempts) return [];
  const is = `${row.status} in generation ${row.generation} with attempt ${row.attempts}`;
  return [{ rule: 'row', index, sentence: `the row is ${is}, after ${tell(last)}` }];
}

const tell = (event: HistoryEvent) =>
  `${event.fromStatus ?? 'nothing'} → ${event.toStatus} (${event.cause}, generation ${event.generation}, attempt ${event.attempt})`;
