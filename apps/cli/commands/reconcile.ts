import { Command } from 'commander';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { withLock } from '../../../lib/db/lock.ts';
import { createLogger } from '../../../lib/log.ts';
import { createFleet } from '../../../lib/media/fleet.ts';
import { RECONCILE_LOCK, reconcile } from '../../../lib/pipeline/reconcile.ts';
import { isThorough, type ReconcileAction, type ReconcileReport } from '../../../lib/pipeline/reconcile-report.ts';
import { Refusal } from '../failure.ts';
import { DATA_DIR_OPTION, onDatabase } from '../operate/on-database.ts';
import { count, durationOrMs } from '../operate/parse.ts';
import { requireMedia } from '../stack/running.ts';

interface Options {
  dryRun?: boolean;
  json?: boolean;
  grace?: number;
  maxDeletions?: number;
  dataDir?: string;
}

export const reconcileCommand = () =>
  new Command('reconcile')
    .description('hold renders, videos and stored files against each other, and mend what does not fit')
    .option('--dry-run', 'only say what would be done; nothing is changed')
    .option('--json', 'as one line of JSON')
    .option(
      '--grace <time>',
      'leave videos without a render that are younger than this, in milliseconds or as 30m, 24h (default RECONCILE_GRACE_MS)',
      durationOrMs,
    )
    .option(
      '--max-deletions <n>',
      'delete up to so many videos, also where they are most of the library (default: RECONCILE_MAX_DELETIONS, and half)',
      count(1_000_000),
    )
    .option(...DATA_DIR_OPTION)
    .addHelpText(
      'after',
      `
Status 0: everything was looked at and mended. 1: something could not be examined, or another reconcile is running.`,
    )
    .action(async ({ dryRun = false, json = false, grace, maxDeletions, dataDir }: Options) => {
      const { LOG_LEVEL } = loadCliConfig();
      const log = createLogger('reconcile', LOG_LEVEL === 'info' ? 'warn' : LOG_LEVEL);
      const actions: ReconcileAction[] = [];
      const onAction = (action: ReconcileAction) => {
        if (json) actions.push(action);
        else process.stdout.write(`${lineOf(action, dryRun)}\n`);
      };
      const report = await onDatabase(dataDir, (_, { installation, database, onChanged }) => {
        const media = createFleet(requireMedia(installation));
        const deps = { config: installation.pipeline, database, media, onChanged, log };
        const graceMs = grace ?? deps.config.RECONCILE_GRACE_MS;
        return withLock(database, RECONCILE_LOCK, () =>
          reconcile(deps, { dryRun, graceMs, onAction, ...(maxDeletions && { maxDeletions }) }),
        );
      });
      if (!report)
        throw new Refusal('busy', 'Another reconcile is running, here or in a worker. Try again when it has ended.');
      process.stdout.write(json ? `${JSON.stringify({ ...report, actions })}\n` : tableOf(report));
      process.exitCode = isThorough(report) ? 0 : 1;
    });

const lineOf = ({ do: what, renderId, videoGuid, detail }: ReconcileAction, dryRun: boolean) =>
  [
    `${dryRun ? 'would ' : ''}${what === 'delete' ? 'delete' : `repair (${what})`}`.padEnd(26),
    renderId === undefined ? `video ${videoGuid}` : `render ${renderId}  video ${videoGuid}`,
    detail ?? '',
  ]
    .join('  ')
    .trimEnd();

/** The report as a table: what, how many, and of which kinds. */
function tableOf({ dryRun, complete, seen, repaired, deleted, left, failed }: ReconcileReport): string {
  const of = (counts: Record<string, number>) => Object.entries(counts).filter(([, count]) => count > 0);
  const sum = (kinds: [string, number][]) => kinds.reduce((total, [, count]) => total + count, 0);
  const row = (name: string, kinds: [string, number][], total: number | '' = sum(kinds)) =>
    `${name.padEnd(14)}${String(total).padStart(8)}   ${kinds.map(([kind, count]) => `${kind} ${count}`).join(', ')}`.trimEnd();
  const lines = [
    row('seen', Object.entries(seen), ''),
    row(dryRun ? 'would repair' : 'repaired', of(repaired)),
    row(dryRun ? 'would delete' : 'deleted', [], deleted),
    row('left', of(left)),
    row('failed', of(failed)),
    ...(complete ? [] : ['It broke off: what is not counted was not looked at.']),
  ];
  return `${lines.join('\n')}\n`;
}
