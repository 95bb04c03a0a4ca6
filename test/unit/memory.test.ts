import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemory } from '../../lib/memory.ts';

const MS = 1_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Finds 1, then 2, and so on. */
function counter() {
  let found = 0;
  return async () => ++found;
}
/** Lets what was found be noted. */
const settle = () => vi.advanceTimersByTimeAsync(0);

describe('a memory', () => {
  it('finds once for all who ask meanwhile, and again when its time is over', async () => {
    const memory = createMemory<number>({ ms: MS, max: 10 });
    const find = counter();
    expect(await Promise.all([memory.get('a', find), memory.get('a', find)])).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(MS - 1);
    expect(await memory.get('a', find)).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await memory.get('a', find)).toBe(2);
  });

  it('lets the oldest go beyond its bound, and never keeps a failure', async () => {
    const memory = createMemory<number>({ ms: MS, max: 2 });
    for (const key of ['a', 'b', 'c']) await memory.get(key, async () => 1);
    expect(['a', 'b', 'c'].map((key) => memory.peek(key))).toEqual([undefined, 1, 1]);
    await expect(memory.get('d', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await memory.get('d', async () => 2)).toBe(2);
  });
});

describe('a peek', () => {
  it('finds nothing by itself, and nothing that is still being found', async () => {
    const memory = createMemory<number>({ ms: MS, max: 10 });
    expect(memory.peek('a', counter())).toBeUndefined();
    const found = memory.get('a', counter());
    expect(memory.peek('a')).toBeUndefined();
    await found;
    expect(memory.peek('a')).toBe(1);
    await vi.advanceTimersByTimeAsync(MS);
    expect(memory.peek('a')).toBeUndefined();
  });

  it('has it found anew once, in the second half of its time, and goes on answering', async () => {
    const memory = createMemory<number>({ ms: MS, max: 10 });
    const find = counter();
    await memory.get('a', find);
    await vi.advanceTimersByTimeAsync(0.45 * MS);
    memory.peek('a', find);
    await settle();
    expect(memory.peek('a', find)).toBe(1);
    await vi.advanceTimersByTimeAsync(0.1 * MS);
    expect([memory.peek('a', find), memory.peek('a', find)]).toEqual([1, 1]);
    await settle();
    expect(memory.peek('a', find)).toBe(2);
    await vi.advanceTimersByTimeAsync(MS - 1);
    expect(memory.peek('a')).toBe(2);
  });

  it('keeps what it has where finding anew fails, no longer than it would have', async () => {
    const memory = createMemory<number>({ ms: MS, max: 10 });
    await memory.get('a', async () => 1);
    await vi.advanceTimersByTimeAsync(0.9 * MS);
    memory.peek('a', () => Promise.reject(new Error('away')));
    await settle();
    expect(memory.peek('a')).toBe(1);
    await vi.advanceTimersByTimeAsync(0.1 * MS);
    expect(memory.peek('a')).toBeUndefined();
  });

  it('never brings back what was forgotten while it was found anew', async () => {
    const memory = createMemory<string>({ ms: MS, max: 10 });
    await memory.get('a', async () => 'old');
    await vi.advanceTimersByTimeAsync(0.9 * MS);
    memory.peek('a', async () => 'also old');
    memory.forget('a');
    await settle();
    expect(memory.peek('a')).toBeUndefined();
  });

  it('forgets what is not worth keeping any more', async () => {
    const memory = createMemory<number | null>({ ms: MS, max: 10, keep: (found) => found !== null });
    await memory.get('a', async () => 1);
    await vi.advanceTimersByTimeAsync(0.9 * MS);
    memory.peek('a', async () => null);
    await settle();
    expect(memory.peek('a')).toBeUndefined();
  });
});
