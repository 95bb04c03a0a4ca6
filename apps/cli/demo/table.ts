import { stripVTControlCharacters } from 'node:util';

export interface TableRow {
  id: string;
  name: string;
  status: string;
  stage: string | null;
  percent: number | null;
  error: string | null;
}

const COLOURS: Record<string, number> = { pending: 90, rendering: 33, transcoding: 36, ready: 32, failed: 31 };
const BAR = 20;

export interface LiveTable {
  show(rows: readonly TableRow[], elapsedMs: number): void;
}

/**
 * Shows the renders as they move: on a terminal a table drawn over and over in its place, elsewhere one line for each
 * change of state.
 */
export function createLiveTable(output: NodeJS.WriteStream): LiveTable {
  let drawn = 0;
  const seen = new Map<string, string>();
  return {
    show(rows, elapsedMs) {
      const seconds = `${(elapsedMs / 1000).toFixed(1)} s`;
      if (!output.isTTY) {
        for (const row of rows) {
          if (seen.get(row.id) === row.status) continue;
          seen.set(row.id, row.status);
          output.write(
            `${seconds.padStart(8)}  ${row.name.padEnd(24)} ${row.status}${row.error ? `: ${row.error}` : ''}\n`,
          );
        }
        return;
      }
      const lines = [
        ...rows.map(line),
        `${rows.filter((row) => row.status === 'ready').length} of ${rows.length} ready, ${seconds}`,
      ];
      const width = output.columns || 80;
      output.write(
        `${drawn > 0 ? `\x1b[${drawn}A` : ''}${lines.map((text) => `\x1b[2K${clip(text, width)}\n`).join('')}`,
      );
      drawn = lines.length;
    },
  };
}

function line({ name, status, stage, percent, error }: TableRow): string {
  const full = Math.round(((status === 'ready' ? 100 : (percent ?? 0)) / 100) * BAR);
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`;
  const note = error ?? (stage === null ? '' : `${stage} ${percent ?? 0} %`);
  return `${name.slice(0, 24).padEnd(24)} \x1b[${COLOURS[status] ?? 0}m${status.padEnd(11)}\x1b[0m ${bar} ${note}`;
}

/** A line longer than the terminal is wide would wrap, and the next drawing would miss it. */
const clip = (text: string, width: number) =>
  stripVTControlCharacters(text).length < width ? text : `${text.slice(0, width)}\x1b[0m`;
