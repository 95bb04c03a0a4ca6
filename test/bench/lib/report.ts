import { mkdir, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Machine, machineLine } from './machine.ts';

export interface Check {
  name: string;
  value: number;
  op: '<=' | '>=';
  target: number;
}

export type Row = Record<string, string | number | null>;

export interface Report {
  bench: string;
  machine: Machine;
  /** What was done, for the reader of the table. */
  about: string[];
  rows: Row[];
  checks: Check[];
}

const folder = fileURLToPath(new URL('../results', import.meta.url));

/**
 * Prints the table and the checks, keeps both as JSON in `results/<bench>.json`, and answers the exit status: 1 where
 * a check was missed. With `json` the JSON goes to stdout instead of the table.
 */
export async function publishReport(report: Report, { json }: { json: boolean }): Promise<number> {
  const checks = report.checks.map((check) => ({ ...check, ok: holds(check) }));
  const { bench, machine, rows } = report;
  const result = JSON.stringify({ bench, at: new Date().toISOString(), machine, rows, checks }, null, 2);
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}/${bench}.json.tmp`, `${result}\n`);
  await rename(`${folder}/${bench}.json.tmp`, `${folder}/${bench}.json`);
  const text = [
    `bench:${bench} on ${machineLine(machine)}`,
    ...report.about,
    '',
    table(rows),
    '',
    ...checks.map(({ ok, name, value, op, target }) => `${ok ? 'ok    ' : 'MISSED'} ${name}: ${value} ${op} ${target}`),
  ];
  process.stdout.write(`${json ? result : text.join('\n')}\n`);
  return checks.every(({ ok }) => ok) ? 0 : 1;
}

const holds = ({ value, op, target }: Check) => (op === '<=' ? value <= target : value >= target);

/** A Markdown table, so that what a run prints can be put into the docs as it is. */
function table(rows: readonly Row[]): string {
  const columns = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => columns.map((column) => String(row[column] ?? '–')));
  const widths = columns.map((column, at) => Math.max(column.length, ...cells.map((line) => line[at]?.length ?? 0)));
  const isNumber = columns.map((column) => rows.every((row) => typeof row[column] !== 'string'));
  const line = (values: readonly string[]) =>
    `| ${values.map((value, at) => (isNumber[at] ? value.padStart(widths[at] ?? 0) : value.padEnd(widths[at] ?? 0))).join(' | ')} |`;
  const rule = `| ${widths.map((width, at) => (isNumber[at] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width))).join(' | ')} |`;
  return [line(columns), rule, ...cells.map(line)].join('\n');
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

/** To so many significant digits: what a bench prints beyond is noise. */
export const round = (value: number, digits = 3) => Number(value.toPrecision(digits));
