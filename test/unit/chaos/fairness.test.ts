import { describe, expect, it } from 'vitest';
import { fair, turnsOf } from '../../chaos/checker/fairness.ts';
import { evidenceOf, incident, type Life } from './evidence.ts';

/** Published at `at` and claimed `afterMs` later. */
function queue(entries: { by: string; at: number; afterMs: number }[]) {
  const life: Life = [
    ['pending', 'published', 0],
    ['rendering', 'claim', 1, 'a'],
    ['transcoding', 'uploaded', 1, 'a'],
    ['ready', 'webhook', 1],
  ];
  const run = evidenceOf(
    Object.fromEntries(entries.map(({ by, at }, index) => [`render-${index}`, { life, fairKey: by, at }])),
  );
  for (const [index, { at, afterMs }] of entries.entries()) {
    run.events.find(({ renderId, to }) => renderId === `render-${index}` && to === 'rendering')!.at = at + afterMs;
  }
  return run;
}

const batch = (by: string, size: number, from: number) =>
  Array.from({ length: size }, (_, index) => ({ by, at: 0, afterMs: from + index * 100 }));

describe('fair', () => {
  it('is broken where a single render waits for all of another’s batch', () => {
    const run = queue([...batch('ana', 10, 100), { by: 'ben', at: 50, afterMs: 1_200 }]);
    expect(fair(run)).toMatchObject([{ invariant: 'fair', renderId: 'render-10' }]);
  });

  it('holds where it waits for one of each other specialist and for what the slots took meanwhile', () => {
    const run = queue([...batch('ana', 10, 100), { by: 'ben', at: 50, afterMs: 300 }]);
    expect(turnsOf(run).find(({ renderId }) => renderId === 'render-10')?.overtaken).toEqual(new Map([['ana', 3]]));
    expect(fair(run)).toEqual([]);
  });

  it('judges nobody who had something else waiting: that comes first', () => {
    const run = queue([
      ...batch('ana', 10, 100),
      { by: 'ben', at: 0, afterMs: 1_150 },
      { by: 'ben', at: 50, afterMs: 1_200 },
    ]);
    expect(turnsOf(run).map(({ renderId }) => renderId)).not.toContain('render-11');
  });

  it('does not count what was claimed while the script had the queue in disorder, and nothing else', () => {
    const run = () => queue([...batch('ana', 10, 100), { by: 'ben', at: 50, afterMs: 1_200 }]);
    expect(fair({ ...run(), incidents: [incident({ kind: 'flush' }, 250)] })).toEqual([]);
    expect(fair({ ...run(), incidents: [incident({ kind: 'flush' }, 1_240)] })).toHaveLength(1);
    expect(fair({ ...run(), incidents: [{ ...incident({ kind: 'flush' }, 500), struck: false }] })).toHaveLength(1);
    const bunny = incident({ kind: 'bunny', what: 'rate5xx', on: {}, off: {}, forMs: 1 }, 0, 2_000);
    expect(fair({ ...run(), incidents: [bunny] })).toHaveLength(1);
  });
});
