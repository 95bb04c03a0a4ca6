import { InvalidArgumentError } from 'commander';
import { z } from 'zod';

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const LONGEST_MS = 3_650 * UNIT_MS.d;

/** `30m`, `2h`, `1d` or `45s` in milliseconds. */
export function duration(text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (!(ms > 0 && ms <= LONGEST_MS)) throw new InvalidArgumentError('Expects a time such as 45s, 30m, 2h or 1d.');
  return ms;
}

/** As `duration`, or a plain number of milliseconds, 0 included. */
export function durationOrMs(text: string): number {
  if (!/^\d+$/.test(text)) return duration(text);
  if (Number(text) > LONGEST_MS) throw new InvalidArgumentError('Expects milliseconds, up to ten years of them.');
  return Number(text);
}

export function uuid(text: string): string {
  const parsed = z.guid().safeParse(text);
  if (!parsed.success) throw new InvalidArgumentError('Expects an id (a UUID).');
  return parsed.data.toLowerCase();
}

/** Parses each of a comma-separated list by the schema; `expects` is for people. */
export const listOf =
  <T>(item: z.ZodType<T>, expects: string) =>
  (text: string): T[] => {
    const parsed = z
      .array(item)
      .min(1)
      .safeParse(text.split(',').map((part) => part.trim()));
    if (!parsed.success) throw new InvalidArgumentError(`Expects ${expects}; several with commas between them.`);
    return parsed.data;
  };

/** Whole numbers from 1 to `max`. */
export const count = (max: number) => (text: string) => {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= 1 && number <= max)) throw new InvalidArgumentError(`Expects a whole number from 1 to ${max}.`);
  return number;
};
