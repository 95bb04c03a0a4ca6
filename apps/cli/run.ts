import { Command, CommanderError } from 'commander';
import { failureOf } from './failure.ts';

/** Each is loaded only where it is asked for: all of them together take a second to load. */
export const COMMANDS = new Map<string, () => Promise<Command>>(
  Object.entries({
    up: async () => (await import('./commands/up.ts')).upCommand(),
    demo: async () => (await import('./commands/demo.ts')).demoCommand(),
    migrate: async () => (await import('./commands/migrate.ts')).migrateCommand(),
    doctor: async () => (await import('./commands/doctor.ts')).doctorCommand(),
    retry: async () => (await import('./commands/retry.ts')).retryCommand(),
    cancel: async () => (await import('./commands/cancel.ts')).cancelCommand(),
    replay: async () => (await import('./commands/replay.ts')).replayCommand(),
    reconcile: async () => (await import('./commands/reconcile.ts')).reconcileCommand(),
    token: async () => (await import('./commands/token.ts')).tokenCommand(),
  }),
);

/**
 * Runs the command that these arguments name. Null where it came to its end, whose status is the process's own; else the
 * status to leave with, and why was said: on stderr, and with `--json` on stdout as well, as one JSON object.
 */
export async function run(argv: readonly string[]): Promise<number | null> {
  try {
    const program = new Command('bakehouse').description('Turns exercise programmes into video that really plays.');
    const asked = COMMANDS.get(argv[2] ?? '');
    for (const load of asked ? [asked] : COMMANDS.values()) program.addCommand((await load()).exitOverride());
    await program.exitOverride().parseAsync(argv);
    return null;
  } catch (error) {
    const isUsage = error instanceof CommanderError;
    if (isUsage && error.exitCode === 0) return 0;
    const failure = failureOf(error);
    // Commander has said its part.
    if (!isUsage) process.stderr.write(`bakehouse: ${failure.message}\n`);
    if (argv.includes('--json')) process.stdout.write(`${JSON.stringify({ error: failure })}\n`);
    return 1;
  }
}
