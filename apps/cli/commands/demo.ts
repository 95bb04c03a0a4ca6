import { once } from 'node:events';
import { Command } from 'commander';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { createLogger } from '../../../lib/log.ts';
import { type DemoResult, runDemo } from '../demo/run-demo.ts';
import { type StackDescription, startStack } from '../stack/stack.ts';
import { untilStopped } from '../stack/until-stopped.ts';

interface Options {
  exit?: boolean;
  json?: boolean;
  fresh?: boolean;
  source: string[];
  dataDir?: string;
}

export const demoCommand = () =>
  new Command('demo')
    .description('run everything, publish a programme and watch it become playable')
    .option('--exit', 'leave once it is ready (status 0) or has failed (status 1)')
    .option('--json', 'print the result as the last line of stdout')
    .option('--fresh', 'drop what earlier runs kept: everything is baked anew')
    .option(
      '--source <file>',
      'use this video as an exercise; may be given several times',
      (file, all: string[]) => [...all, file],
      [],
    )
    .option('--data-dir <folder>', 'where to keep everything (default BAKEHOUSE_DATA_DIR or .bakehouse/data)')
    .action(async (options: Options) => {
      const config = loadCliConfig();
      if (options.dataDir) config.BAKEHOUSE_DATA_DIR = options.dataDir;
      // With --json the last line of stdout is the result, so everything for people goes to stderr.
      const output = options.json ? process.stderr : process.stdout;
      const say = (text: string) => output.write(`${text}\n`);
      await untilStopped(async (stopped) => {
        const stack = await startStack({
          config,
          fresh: options.fresh ?? false,
          log: createLogger('demo', config.LOG_LEVEL === 'info' ? 'warn' : config.LOG_LEVEL),
          onStep: (step) => say(`starting ${step} …`),
        });
        try {
          const result = await runDemo({ stack: stack.describe(), config, sources: options.source, output, stopped });
          tell(say, stack.describe(), result);
          if (options.json) process.stdout.write(`${JSON.stringify(result)}\n`);
          process.exitCode = result.status === 'ready' ? 0 : 1;
          if (!options.exit && !stopped.aborted) {
            say('Everything stays up until Ctrl-C.');
            await once(stopped, 'abort');
          }
        } finally {
          say('stopping …');
          await stack.stop();
        }
      });
    });

function tell(say: (text: string) => void, stack: StackDescription, result: DemoResult): void {
  const seconds = (result.elapsedMs / 1000).toFixed(1);
  say(
    result.status === 'ready'
      ? `The programme is ready after ${seconds} s; ${result.bakes === 0 ? 'nothing had to be baked: cache hit for all' : `${result.bakes} videos were baked`}.`
      : `The programme is ${result.status} after ${seconds} s.`,
  );
  say(`API docs   ${stack.edge.url}/docs`);
  say(`queues     ${stack.ops.url}  (${stack.ops.user} / ${stack.ops.password})`);
  for (const render of result.renders) {
    if (render.hlsUrl) say(`playlist   ${render.hlsUrl}`);
    if (render.manifestUrl) say(`manifest   ${render.manifestUrl}`);
  }
}
