import { Command } from 'commander';
import { retryRenders } from '../../../lib/pipeline/operate.ts';
import { DATA_DIR_OPTION, onDatabase } from '../operate/on-database.ts';
import { collect, tell } from '../operate/report.ts';
import { CODES, resolveSelection, type SelectionOptions, withSelection } from '../operate/selection.ts';

interface Options extends SelectionOptions {
  force?: boolean;
  dryRun?: boolean;
  json?: boolean;
  dataDir?: string;
}

export const retryCommand = () =>
  withSelection(new Command('retry'))
    .description('make failed renders again, in a new generation; one that waits for a later attempt is due at once')
    .option('--force', 'also what is ready, which gets a new video: its players get "preparing" until then')
    .option('--dry-run', 'only say what would be done')
    .option('--json', 'as one line of JSON')
    .option(...DATA_DIR_OPTION)
    .addHelpText(
      'after',
      `
Without --status and ids it takes those that failed and those that wait (with --force also those that are ready).
What is being baked or transcoded is refused: cancel it first. The workers' next sweep takes up what is retried.

Status 0: all that matched was retried. 1: nothing matched, something was refused, or an id is unknown or ambiguous.

${CODES}`,
    )
    .action(async (ids: string[], options: Options) => {
      const { force = false, dryRun = false } = options;
      const report = await onDatabase(options.dataDir, async (db, { onChanged }) => {
        const filter = await resolveSelection(db, ids, options, [
          'failed',
          'waiting',
          ...(force ? ['ready' as const] : []),
        ]);
        return collect(retryRenders(db, filter, { force, dryRun, onChanged, cause: 'bakehouse retry' }), dryRun);
      });
      process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : tell(report, 'retried'));
      process.exitCode = report.done > 0 && report.refused === 0 ? 0 : 1;
    });
