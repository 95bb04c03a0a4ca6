import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { onSignal } from '../../lib/shutdown.ts';
import { silentLog } from '../support/log.ts';

const EVENTS = ['SIGTERM', 'SIGINT', 'disconnect'];
type Listener = (...args: unknown[]) => void;
/** What was there before: the test runner's own. */
let others: Map<string, Listener[]>;
const bare: NodeJS.EventEmitter = process;
let exits: number[];

beforeEach(() => {
  others = new Map(EVENTS.map((event) => [event, bare.listeners(event) as Listener[]]));
  for (const event of EVENTS) bare.removeAllListeners(event);
  exits = [];
  vi.spyOn(process, 'exit').mockImplementation(((status: number) => exits.push(status)) as never);
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const [event, listeners] of others) {
    bare.removeAllListeners(event);
    for (const listener of listeners) bare.on(event, listener);
  }
});

/** A shutdown whose only step lasts until `end`. */
function setup() {
  let end: () => void = () => undefined;
  const step = new Promise<void>((resolve) => {
    end = resolve;
  });
  const leave = onSignal([{ name: 'step', run: () => step, deadlineMs: 60_000 }], silentLog);
  return { leave, end };
}

describe('a shutdown', () => {
  it('goes on when it is asked for once, and when the same signal is passed on', async () => {
    const { end } = setup();
    process.emit('SIGTERM', 'SIGTERM');
    vi.advanceTimersByTime(500);
    process.emit('SIGTERM', 'SIGTERM');
    expect(exits).toEqual([]);
    end();
    await vi.waitFor(() => expect(exits).toEqual([0]));
  });

  it('is cut short by a second signal', () => {
    setup();
    process.emit('SIGINT', 'SIGINT');
    vi.advanceTimersByTime(1_500);
    process.emit('SIGTERM', 'SIGTERM');
    expect(exits).toEqual([130]);
  });

  it('that the process began of its own accord is not cut short by the first signal, and leaves with 1', async () => {
    const { leave, end } = setup();
    leave('no render job is taken');
    vi.advanceTimersByTime(5_000);
    process.emit('SIGTERM', 'SIGTERM');
    expect(exits).toEqual([]);
    end();
    await vi.waitFor(() => expect(exits).toEqual([1]));
  });
});
