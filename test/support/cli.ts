import { type Command, CommanderError } from 'commander';
import { vi } from 'vitest';

export interface CommandResult {
  exitCode: number;
  stdout: string;
  /** What commander says of the options, or the error that the command ends with. */
  stderr: string;
}

/** Runs one command of the cli in this process, with nothing in its environment but what is given. */
export async function runCommand(
  command: Command,
  args: string[],
  env: Record<string, string> = {},
): Promise<CommandResult> {
  const result: CommandResult = { exitCode: 0, stdout: '', stderr: '' };
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'REDIS_PREFIX', 'MEDIA_URL', 'MEDIA_TOKEN'])
    vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const collect = (text: string) => {
    result.stderr += text;
  };
  const written = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    result.stdout += String(text);
    return true;
  });
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await command.exitOverride().configureOutput({ writeErr: collect }).parseAsync(args, { from: 'user' });
    result.exitCode = Number(process.exitCode);
  } catch (error) {
    result.exitCode = error instanceof CommanderError ? error.exitCode : 1;
    if (!(error instanceof CommanderError)) result.stderr += error instanceof Error ? error.message : String(error);
  } finally {
    process.exitCode = before;
    written.mockRestore();
    vi.unstubAllEnvs();
  }
  return result;
}
