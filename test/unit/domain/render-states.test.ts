import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readinessOf } from '../../../lib/domain/readiness.ts';
import {
  applyMove,
  backoffMs,
  decideAfterFailure,
  isTerminal,
  MOVES,
  type MoveName,
  RENDER_STATUSES,
  type RenderLife,
  renderJobId,
} from '../../../lib/domain/render-states.ts';

const moves = Object.keys(MOVES) as MoveName[];
const born: RenderLife = { status: 'pending', generation: 0, attempts: 0 };

describe('render states', () => {
  it('never leave ready or failed except into a new generation, whatever is tried in whatever order', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...moves), { maxLength: 60 }), (sequence) => {
        let life = born;
        for (const name of sequence) {
          const next = applyMove(life, name);
          if (!next) continue;
          if (isTerminal(life.status))
            expect(next).toEqual({ status: 'pending', generation: life.generation + 1, attempts: 0 });
          else expect(next.generation).toBe(life.generation);
          expect(next.attempts).toBeGreaterThanOrEqual(0);
          life = next;
        }
      }),
    );
  });

  it('can all be reached and, unless terminal, all be left without a person', () => {
    const reached = new Set(['pending', ...moves.map((name) => MOVES[name].to)]);
    expect([...reached].sort()).toEqual([...RENDER_STATUSES].sort());
    for (const status of RENDER_STATUSES) {
      const exits = moves.filter((name) => name !== 'requeue' && applyMove({ ...born, status }, name));
      expect(exits.length > 0).toBe(!isTerminal(status));
    }
  });

  it('count a claim as an attempt, give it back on a hand-back and keep it on a crash', () => {
    const claimed = applyMove(born, 'claim') as RenderLife;
    expect(claimed.attempts).toBe(1);
    expect(applyMove(claimed, 'hand-back')?.attempts).toBe(0);
    expect(applyMove(claimed, 'lease-expired')?.attempts).toBe(1);
  });

  it('are told apart in the queue by generation', () => {
    expect(renderJobId('ab', 0)).toBe('ab');
    expect(renderJobId('ab', 2)).toBe('ab-g2');
  });

  it('retry what may be cured until the attempts run out, and never what cannot', () => {
    expect(decideAfterFailure({ attempts: 1, maxAttempts: 3 }, true)).toBe('retry');
    expect(decideAfterFailure({ attempts: 3, maxAttempts: 3 }, true)).toBe('dead-letter');
    expect(decideAfterFailure({ attempts: 1, maxAttempts: 3 }, false)).toBe('dead-letter');
  });

  it('back off between a tenth and the whole of an exponential step, up to the cap', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (attempts, random) => {
          const step = Math.min(60_000, 1000 * 2 ** (attempts - 1));
          const wait = backoffMs({ baseMs: 1000, maxMs: 60_000 }, attempts, random);
          expect(wait).toBeGreaterThanOrEqual(Math.floor(step / 10));
          expect(wait).toBeLessThanOrEqual(step);
        },
      ),
    );
  });
});

describe('readiness', () => {
  const item = (status: RenderLife['status'] | null, n = 0) => ({
    itemId: `i${n}`,
    renderId: `r${n}`,
    status,
    errorCode: null,
    errorSentence: null,
  });

  it('is ready only when every item is', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...RENDER_STATUSES, null), { maxLength: 12 }), (statuses) => {
        const items = statuses.map((status, n) => item(status, n));
        const readiness = readinessOf(items);
        expect(readiness.status === 'ready').toBe(items.length > 0 && statuses.every((s) => s === 'ready'));
        expect(readiness.status === 'failed').toBe(statuses.includes('failed'));
        expect(statuses.slice(0, readiness.readyThrough).every((s) => s === 'ready')).toBe(true);
        expect(readiness.readyThrough === items.length || statuses[readiness.readyThrough] !== 'ready').toBe(true);
      }),
    );
  });
});
