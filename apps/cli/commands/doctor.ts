import { Command } from 'commander';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { examine } from '../doctor/examine.ts';

export const doctorCommand = () =>
  new Command('doctor')
    .description('tell what was found on this machine, what is wrong, and what mends it')
    .option('--json', 'as one line of JSON')
    .action(async (options: { json?: boolean }) => {
      const findings = await examine(loadCliConfig());
      if (options.json) process.stdout.write(`${JSON.stringify(findings)}\n`);
      else {
        for (const { ok, what, found, fix } of findings) {
          process.stdout.write(`${ok ? 'ok   ' : 'WRONG'}  ${what.padEnd(12)} ${found}\n`);
          if (fix) process.stdout.write(`       ${''.padEnd(12)} → ${fix}\n`);
        }
      }
      if (findings.some(({ ok }) => !ok)) process.exitCode = 1;
    });
