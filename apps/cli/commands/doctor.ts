import { Command } from 'commander';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { examine, type Finding } from '../doctor/examine.ts';
import { examineInstallation, tellPipeline } from '../doctor/pipeline.ts';
import { DATA_DIR_OPTION } from '../operate/on-database.ts';
import { count } from '../operate/parse.ts';

interface Options {
  pipeline?: boolean;
  json?: boolean;
  limit: number;
  dataDir?: string;
}

export const doctorCommand = () =>
  new Command('doctor')
    .description('tell what was found on this machine, what is wrong, and what mends it')
    .option(
      '--pipeline',
      'look at the renders of an installation instead: who has each, until when, and what is not as it must be',
    )
    .option('--limit <n>', 'with --pipeline: name at most so many of each; totals are always whole', count(10_000), 50)
    .option(...DATA_DIR_OPTION)
    .option('--json', 'as one line of JSON')
    .addHelpText('after', '\nStatus 0: all is well. 1: something is wrong, overdue or violated.')
    .action(async ({ pipeline, json, limit, dataDir }: Options) => {
      if (pipeline) {
        const findings = await examineInstallation({ dataDir, limit });
        process.stdout.write(json ? `${JSON.stringify(findings)}\n` : tellPipeline(findings, new Date()));
        process.exitCode = findings.ok ? 0 : 1;
        return;
      }
      const findings = await examine({ ...loadCliConfig(), ...(dataDir && { BAKEHOUSE_DATA_DIR: dataDir }) });
      process.stdout.write(json ? `${JSON.stringify(findings)}\n` : tellMachine(findings));
      process.exitCode = findings.every(({ ok }) => ok) ? 0 : 1;
    });

const tellMachine = (findings: readonly Finding[]) =>
  findings
    .map(({ ok, what, found, fix }) => {
      const line = `${ok ? 'ok   ' : 'WRONG'}  ${what.padEnd(12)} ${found}\n`;
      return fix ? `${line}       ${''.padEnd(12)} → ${fix}\n` : line;
    })
    .join('');
