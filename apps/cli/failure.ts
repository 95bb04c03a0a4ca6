import { CommanderError } from 'commander';
import { ConfigError } from '../../lib/config/env.ts';
import { whyStatementFailed } from '../../lib/db/outage.ts';
import { AppError, type ErrorCode } from '../../lib/errors.ts';
import { FolderInUse } from '../../lib/services/folder-lock.ts';

/** Why a command was not done, for a script; what the installation itself answers has the codes of `lib/errors.ts`. */
type FailureCode =
  /** The options or arguments do not say what is to be done. */
  | 'usage'
  | 'unknown_id'
  /** A variable is missing or wrong. */
  | 'configuration'
  /** None runs on the data folder. */
  | 'no_installation'
  /** Another process runs on the data folder. */
  | 'folder_in_use'
  /** Another process is at it. */
  | 'busy'
  /** A file that was named cannot be used. */
  | 'bad_file'
  /** Postgres cannot be reached, or refused a statement. */
  | 'database'
  | ErrorCode;

/** A command's own refusal, in a sentence that says what mends it. */
export class Refusal extends Error {
  readonly code: FailureCode;
  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Refusal';
    this.code = code;
  }
}

/** What went wrong, as a person wants to read it and with a code for scripts. */
export function failureOf(error: unknown): { code: FailureCode; message: string } {
  if (error instanceof CommanderError) return { code: 'usage', message: error.message.replace(/^error: /, '') };
  if (error instanceof ConfigError) return { code: 'configuration', message: error.message };
  if (error instanceof FolderInUse) return { code: 'folder_in_use', message: error.message };
  if (error instanceof Refusal) return { code: error.code, message: error.message };
  if (error instanceof AppError)
    return { code: error.code, message: [error.message, error.detail].filter(Boolean).join('\n') };
  const refused = whyStatementFailed(error);
  if (refused !== undefined) return { code: 'database', message: `Postgres: ${refused}` };
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}
