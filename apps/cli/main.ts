#!/usr/bin/env node
import { Command } from 'commander';
import { ConfigError } from '../../lib/config/env.ts';
import { whyStatementFailed } from '../../lib/db/outage.ts';
import { AppError } from '../../lib/errors.ts';
import { cancelCommand } from './commands/cancel.ts';
import { demoCommand } from './commands/demo.ts';
import { doctorCommand } from './commands/doctor.ts';
import { migrateCommand } from './commands/migrate.ts';
import { reconcileCommand } from './commands/reconcile.ts';
import { replayCommand } from './commands/replay.ts';
import { retryCommand } from './commands/retry.ts';
import { tokenCommand } from './commands/token.ts';
import { upCommand } from './commands/up.ts';

const program = new Command('bakehouse')
  .description('Turns exercise programmes into video that really plays.')
  .addCommand(upCommand())
  .addCommand(demoCommand())
  .addCommand(migrateCommand())
  .addCommand(doctorCommand())
  .addCommand(retryCommand())
  .addCommand(cancelCommand())
  .addCommand(replayCommand())
  .addCommand(reconcileCommand())
  .addCommand(tokenCommand());

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

program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`bakehouse: ${explain(error)}\n`);
  process.exit(1);
});
