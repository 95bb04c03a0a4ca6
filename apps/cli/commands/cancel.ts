import { Command } from 'commander';
import { cancelRenders } from '../../../lib/pipeline/operate.ts';
import { DATA_DIR_OPTION, onDatabase } from '../operate/on-database.ts';
import { collect, tell } from '../operate/report.ts';
import { CODES, resolveSelection, type SelectionOptions, withSelection } from '../operate/selection.ts';

interface Options extends SelectionOptions {
  dryRun?: boolean;
  json?: boolean;
  dataDir?: string;
}

export const cancelCommand = () =>
  withSelection(new Command('cancel'))
    .description('end renders that are queued, being baked or transcoded: failed, with the code cancelled')
    .option('--dry-run', 'only say what would be done')
    .option('--json', 'as one line of JSON')
    .option(...DATA_DIR_OPTION)
    .addHelpText(
      'after',
      `
Without --status and ids it takes all that is under way. A bake stops within seconds. Nobody is notified. A retry, or a
publish that needs it, makes a cancelled render after all.

Status 0: all that matched was cancelled. 1: nothing matched, something was refused, or an id is unknown or ambiguous.

${CODES}`,
    )
    .action(async (ids: string[], options: Options) => {
      const { dryRun = false } = options;
      const report = await onDatabase(options.dataDir, async (db, { onChanged }) => {
        const filter = await resolveSelection(db, ids, options, ['pending', 'rendering', 'transcoding']);
        return collect(cancelRenders(db, filter, { dryRun, onChanged, cause: 'bakehouse cancel' }), dryRun);
      });
      process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : tell(report, 'cancelled'));
      process.exitCode = report.done > 0 && report.refused === 0 ? 0 : 1;
    });
