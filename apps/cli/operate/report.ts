import type { Operated } from '../../../lib/pipeline/operate.ts';

/** Renders told one by one; of more, only the counts. */
const MOST_LINES = 50;

export interface OperateReport {
  dryRun: boolean;
  done: number;
  refused: number;
  renders: {
    id: string;
    exerciseId: string;
    recipeHash: string;
    language: string;
    from: string;
    to: string | null;
    code: string | null;
    note: string | null;
  }[];
}

/** Collects what a command did. */
export async function collect(batches: AsyncIterable<Operated[]>, dryRun: boolean): Promise<OperateReport> {
  const report: OperateReport = { dryRun, done: 0, refused: 0, renders: [] };
  for await (const batch of batches)
    for (const { render, to, note } of batch) {
      const { id, exerciseId, recipeHash, language, status, errorCode } = render;
      report.renders.push({ id, exerciseId, recipeHash, language, from: status, to, code: errorCode, note });
      if (to === null) report.refused += 1;
      else report.done += 1;
    }
  return report;
}

/** The report in lines for a person; `verb` is what was done: "retried". */
export function tell({ dryRun, done, refused, renders }: OperateReport, verb: string): string {
  const what = (render: OperateReport['renders'][number]) =>
    [
      render.to === null ? `${render.from}, refused:` : `${render.from} → ${render.to}`,
      render.note,
      render.code && `(${render.code})`,
    ]
      .filter(Boolean)
      .join(' ');
  const lines =
    renders.length <= MOST_LINES
      ? renders.map((render) => `${render.id}  exercise ${render.exerciseId}  ${what(render)}`)
      : tally(renders.map(what)).map(([text, count]) => `${String(count).padStart(8)}  ${text}`);
  const total =
    renders.length === 0 ? 'No render matches.' : `${done} ${dryRun ? `would be ${verb}` : verb}, ${refused} refused.`;
  return `${[...lines, total].join('\n')}\n`;
}

function tally(texts: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}
