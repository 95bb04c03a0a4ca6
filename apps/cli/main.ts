#!/usr/bin/env node
import { Command } from 'commander';
import { ConfigError } from '../../lib/config/env.ts';
import { whyStatementFailed } from '../../lib/db/outage.ts';
import { AppError } from '../../lib/errors.ts';

/** Each is loaded only where it is asked for: all of them together take a second to load. */
const COMMANDS = new Map<string, () => Promise<Command>>(
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

async function run(argv: readonly string[]): Promise<void> {
  const program = new Command('bakehouse').description('Turns exercise programmes into video that really plays.');
  const asked = COMMANDS.get(argv[2] ?? '');
  for (const load of asked ? [asked] : COMMANDS.values()) program.addCommand(await load());
  await program.parseAsync(argv);
}

/** What went wrong as a person wants to read it; a stack only where it is a defect of ours. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof AppError) return [error.message, error.detail].filter(Boolean).join('\n');
  const refused = whyStatementFailed(error);
  if (refused !== undefined) return `Postgres: ${refused}`;
  return error instanceof Error ? error.message : String(error);
}

// Whoever reads may have had enough (`| head`); what was begun is done all the same.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

run(process.argv).catch((error: unknown) => {
  process.stderr.write(`bakehouse: ${explain(error)}\n`);
  process.exit(1);
});
