import { once } from 'node:events';
import { Command } from 'commander';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { createLogger } from '../../../lib/log.ts';
import { startStack } from '../stack/stack.ts';
import { untilStopped } from '../stack/until-stopped.ts';

interface Options {
  json?: boolean;
  fresh?: boolean;
  dataDir?: string;
}

export const upCommand = () =>
  new Command('up')
    .description('run everything on this machine until Ctrl-C')
    .option('--json', 'print one line of JSON on stdout when all is ready')
    .option('--fresh', 'drop what earlier runs kept')
    .option('--data-dir <folder>', 'where to keep everything (default BAKEHOUSE_DATA_DIR or .bakehouse/data)')
    .action(async (options: Options) => {
      const config = loadCliConfig();
      if (options.dataDir) config.BAKEHOUSE_DATA_DIR = options.dataDir;
      const say = (text: string) => process.stderr.write(`${text}\n`);
      await untilStopped(async (stopped) => {
        const stack = await startStack({
          config,
          fresh: options.fresh ?? false,
          log: createLogger('up', process.stderr.isTTY ? 'warn' : config.LOG_LEVEL),
          onStep: (step) => say(`starting ${step} …`),
        });
        try {
          const all = stack.describe();
          if (options.json) process.stdout.write(`${JSON.stringify(all)}\n`);
          else {
            say(`API and docs  ${all.edge.url}/docs`);
            say(`queues        ${all.ops.url}  (${all.ops.user} / ${all.ops.password})`);
            say(`logs          ${all.dataDir}/logs`);
            say(`a token       npm run -s bakehouse -- token --role manager --data-dir ${all.dataDir}`);
            say('Ctrl-C stops everything.');
          }
          if (!stopped.aborted) await once(stopped, 'abort');
        } finally {
          say('stopping …');
          await stack.stop();
        }
      });
    });
