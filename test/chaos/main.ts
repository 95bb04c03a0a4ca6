import { setMaxListeners } from 'node:events';
import { Command, InvalidArgumentError } from 'commander';
import { untilStopped } from '../../apps/cli/stack/until-stopped.ts';
import { createLogger } from '../../lib/log.ts';
import { violationsOf } from './checker/check.ts';
import { startFleet } from './fleet.ts';
import { figuresOf, sayFigures, sayViolations } from './report.ts';
import { type ChaosOptions, runChaos } from './run.ts';
import { sayAction, scriptOf } from './script.ts';

const positive = (text: string) => {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('expects a number above 0');
  return value;
};
const whole = (text: string) => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('expects a whole number');
  return Number(text);
};

interface Flags extends ChaosOptions {
  json?: boolean;
  script?: boolean;
}

const say = (text: string) => process.stderr.write(`${text}\n`);

/** Runs one seed; the exit status says whether everything held. */
async function chaos(flags: Flags, signal: AbortSignal): Promise<void> {
  const { seed, minutes, renders } = flags;
  const options = { seed, minutes, renders };
  // Everything that waits listens to it.
  setMaxListeners(0, signal);
  const begun = performance.now();
  say(`chaos: seed ${seed}, ${minutes} minutes, ${renders} renders`);
  const fleet = await startFleet(createLogger('chaos', 'error'));
  let held = false;
  try {
    const run = await runChaos(options, { fleet, signal, say });
    const violations = violationsOf(run.evidence);
    const figures = figuresOf(options, run, Math.round(performance.now() - begun));
    say(`\n${sayFigures(figures)}\n`);
    held = violations.length === 0;
    say(held ? 'Everything held.' : sayViolations(violations, run.evidence));
    if (flags.json) process.stdout.write(`${JSON.stringify({ held, violations, ...figures })}\n`);
  } catch (error) {
    if (!signal.aborted) throw error;
    say('Stopped.');
  } finally {
    await fleet.stop();
    const keepLogs = !held && !signal.aborted;
    await fleet.remove({ keepLogs });
    if (keepLogs) say(`\nThe logs are kept in ${fleet.logDir}; the same seed plays the same script again.`);
  }
  if (!held) process.exitCode = 1;
}

const program = new Command('chaos')
  .description('Kills and breaks everything in the order of a seed while clinics publish, and checks that all held.')
  .option('--seed <number>', 'what decides everything', whole, 1)
  .option('--minutes <number>', 'how long things go wrong', positive, 3)
  .option('--renders <number>', 'different recipes to publish', whole, 60)
  .option('--json', 'the result as the last line of stdout')
  .option('--script', 'print what would go wrong, and leave')
  .action(async (flags: Flags) => {
    if (flags.script) {
      for (const action of scriptOf(flags.seed, flags.minutes))
        process.stdout.write(`${(action.atMs / 1000).toFixed(1).padStart(7)} s  ${sayAction(action)}\n`);
      return;
    }
    await untilStopped((signal) => chaos(flags, signal));
  });

program.parseAsync().catch((error: unknown) => {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
});
