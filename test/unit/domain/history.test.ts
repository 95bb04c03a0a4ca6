import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HistoryEvent, historyViolations } from '../../../lib/domain/history.ts';
import { applyMove, MOVES, type MoveName, type RenderLife } from '../../../lib/domain/render-states.ts';

const birth: HistoryEvent = {
  generation: 0,
  fromStatus: null,
  toStatus: 'pending',
  attempt: 0,
  cause: 'published',
  leaseToken: null,
};

/** The history that these moves write, as far as the table allows them. */
function historyOf(names: readonly MoveName[]): { events: HistoryEvent[]; row: RenderLife } {
  const events = [birth];
  let row: RenderLife = { status: 'pending', generation: 0, attempts: 0 };
  let token = '';
  for (const name of names) {
    const next = applyMove(row, name);
    if (!next) continue;
    if (name === 'claim') token = randomUUID();
    events.push({
      generation: next.generation,
      fromStatus: row.status,
      toStatus: next.status,
      attempt: next.attempts,
      cause: name,
      leaseToken: name === 'claim' || 'fenced' in MOVES[name] ? token : null,
    });
    row = next;
  }
  return { events, row };
}

const sequence = fc.array(fc.constantFrom(...(Object.keys(MOVES) as MoveName[])), { maxLength: 40 });
const rulesOf = (events: HistoryEvent[], row?: RenderLife) =>
  historyViolations(events, { whole: true, ...(row && { row }) }).map(({ rule, index }) => [rule, index]);

const full = () =>
  historyOf(['claim', 'hand-back', 'claim', 'retry', 'claim', 'uploaded', 'finished', 'requeue', 'claim', 'cancel']);

/** The full history with one event changed. */
function changed(index: number, change: Partial<HistoryEvent>): HistoryEvent[] {
  return full().events.map((event, at) => (at === index ? { ...event, ...change } : event));
}

describe('a history', () => {
  it('of moves that the table allows violates nothing, nor does any later part of it', () => {
    fc.assert(
      fc.property(sequence, fc.nat(), (names, cut) => {
        const { events, row } = historyOf(names);
        expect(historyViolations(events, { whole: true, row })).toEqual([]);
        const rest = events.slice(cut % events.length);
        expect(historyViolations(rest, { whole: false, row })).toEqual([]);
      }),
    );
  });

  it('with an event missing or out of its place is noticed', () => {
    fc.assert(
      fc.property(sequence, fc.nat(), (names, at) => {
        const { events, row } = historyOf([...names, 'claim', 'uploaded', 'cancel', 'requeue']);
        const missing = at % events.length;
        expect(rulesOf(events.toSpliced(missing, 1), row)).not.toEqual([]);
        const swapped = at % (events.length - 1);
        const [one, two] = [events[swapped]!, events[swapped + 1]!];
        expect(rulesOf(events.with(swapped, two).with(swapped + 1, one), row)).not.toEqual([]);
      }),
    );
  });

  it.each<[string, HistoryEvent[], [string, number][]]>([
    ['begins with something else than its birth', full().events.slice(1), [['birth', 0]]],
    [
      'is born in another generation',
      changed(0, { generation: 1 }),
      [
        ['birth', 0],
        ['generation', 1],
      ],
    ],
    ['is born twice', [birth, birth], [['birth', 1]]],
    [
      'goes from ready to rendering under a new token',
      [
        ...historyOf(['claim', 'uploaded', 'finished']).events,
        { ...birth, fromStatus: 'ready', toStatus: 'rendering', attempt: 1, leaseToken: randomUUID() },
      ],
      [
        ['move', 4],
        ['fence', 4],
      ],
    ],
    [
      'begins where the last event did not end',
      changed(7, { fromStatus: 'rendering', toStatus: 'failed' }),
      [
        ['chain', 7],
        ['chain', 8],
      ],
    ],
    [
      'goes back a generation',
      changed(9, { generation: 0 }),
      [
        ['generation', 9],
        ['generation', 10],
      ],
    ],
    ['jumps a generation', [...full().events, { ...birth, fromStatus: 'failed', generation: 3 }], [['generation', 11]]],
    [
      'starts a generation without a requeue',
      changed(6, { generation: 1 }),
      [
        ['generation', 6],
        ['generation', 7],
      ],
    ],
    ['does not count an attempt', changed(1, { attempt: 0 }), [['attempts', 1]]],
    [
      'has a claim without a token',
      changed(1, { leaseToken: null }),
      [
        ['fence', 1],
        ['fence', 2],
      ],
    ],
    ['has a claim with the token of another', changed(3, { leaseToken: full().events[1]!.leaseToken }), [['fence', 4]]],
    ['has an upload under another token', changed(6, { leaseToken: randomUUID() }), [['fence', 6]]],
    ['has an upload under no token', changed(6, { leaseToken: null }), [['fence', 6]]],
    ['has a hand-back under no token', changed(2, { leaseToken: null }), [['fence', 2]]],
    ['has a worker settle a transcode', changed(7, { leaseToken: randomUUID() }), [['fence', 7]]],
  ])('that %s is told', (_, events, violations) => {
    expect(rulesOf(events)).toEqual(violations);
  });
});
