import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import { describe, expect, it } from 'vitest';
import { Admission } from '../../../lib/media/admission.ts';
import { SingleFlight } from '../../../lib/media/single-flight.ts';
import { together } from '../../../lib/media/together.ts';
import { inSlot } from '../../../lib/media/tools.ts';

const never = new AbortController().signal;
const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true }),
  );

describe('work that several want', () => {
  it('is done once for all who want it at the same time, and again for who comes later', async () => {
    const flights = new SingleFlight<number>();
    let runs = 0;
    const start = async () => {
      await sleep(5);
      return ++runs;
    };
    expect(await Promise.all([1, 2, 3].map(() => flights.join('a', never, start)))).toEqual([1, 1, 1]);
    expect(await flights.join('a', never, start)).toBe(2);
  });

  it('goes on when one of them leaves, and is stopped when the last one has', async () => {
    const flights = new SingleFlight<string>();
    const [one, two] = [new AbortController(), new AbortController()];
    let stopped = false;
    let ended = false;
    const start = async (signal: AbortSignal) => {
      await aborted(signal).catch(() => undefined);
      stopped = true;
      await sleep(20);
      ended = true;
      throw new Error('stopped');
    };
    const first = flights.join('a', one.signal, start);
    const second = flights.join('a', two.signal, start);
    one.abort();
    await expect(first).rejects.toMatchObject({ code: 'aborted' });
    expect(stopped).toBe(false);
    two.abort();
    await expect(second).rejects.toMatchObject({ code: 'aborted' });
    // The last to leave is let go when nothing runs any more.
    expect(ended).toBe(true);
  });

  it('that fails, fails for all and can be tried anew', async () => {
    const flights = new SingleFlight<string>();
    const fails = async () => {
      throw new Error('no');
    };
    const results = await Promise.allSettled([flights.join('a', never, fails), flights.join('a', never, fails)]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await flights.join('a', never, async () => 'yes')).toBe('yes');
  });
});

describe('works side by side', () => {
  it('give their results in order', async () => {
    expect(
      await together(
        never,
        async () => 1,
        async () => 'two',
      ),
    ).toEqual([1, 'two']);
  });

  it('are all told to stop when one fails, and the failure comes when all have ended', async () => {
    let ended = false;
    const slow = async (signal: AbortSignal) => {
      await aborted(signal).catch(() => undefined);
      await sleep(10);
      ended = true;
    };
    await expect(
      together(never, slow, async () => {
        throw new Error('first');
      }),
    ).rejects.toThrow('first');
    expect(ended).toBe(true);
  });
});

describe('slots', () => {
  it('let a waiting work go at once when it is not wanted any more, and keep a running one until it has ended', async () => {
    const slots = new PQueue({ concurrency: 1 });
    const controller = new AbortController();
    let running = false;
    const first = inSlot({ slots }, never, async () => {
      running = true;
      await sleep(30);
      running = false;
    });
    const waiting = inSlot({ slots }, controller.signal, async () => 'never');
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
    expect(running).toBe(true);
    await first;
    expect(await inSlot({ slots }, never, async () => 'next')).toBe('next');
  });
});

describe('admission', () => {
  it('turns away who finds no slot, with a time to come back, and takes a slot back only once', async () => {
    const admission = new Admission(1);
    const leave = admission.enter();
    expect(() => admission.enter()).toThrow(
      expect.objectContaining({ code: 'media_busy', retryAfterMs: expect.any(Number) }),
    );
    const idle = admission.whenIdle();
    leave();
    leave();
    await idle;
    expect(admission.busy).toBe(0);
    admission.enter();
    admission.drain();
    expect(() => admission.assertOpen()).toThrow(expect.objectContaining({ code: 'media_draining' }));
    expect(admission).toMatchObject({ slots: 1, busy: 1, draining: true });
  });
});
