import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import type { StackDescription } from '../../apps/cli/stack/stack.ts';
import { built } from './built.ts';

const root = join(import.meta.dirname, '../..');

/** The cli, as a user runs it; output is collected. */
export const runCli = (args: string[], env: Record<string, string> = {}) =>
  execa(process.execPath, [built('apps/cli/main.ts'), ...args], {
    cwd: root,
    env,
    reject: false,
    timeout: 240_000,
  });

export interface RunningStack {
  all: StackDescription;
  /** Ends it as Ctrl-C does; answers its exit status. */
  stop(): Promise<number | undefined>;
}

/** `bakehouse up --json` in a process of its own, with everything that brings. */
export async function startUp(dataDir: string, env: Record<string, string> = {}): Promise<RunningStack> {
  const child = execa(process.execPath, [built('apps/cli/main.ts'), 'up', '--json', '--data-dir', dataDir], {
    cwd: root,
    env: { LOG_LEVEL: 'warn', ...env },
    reject: false,
  });
  const line = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  const outcome = await Promise.race([line, child]);
  if (typeof outcome !== 'string') throw new Error(`up ended with ${outcome.exitCode}:\n${outcome.stderr}`);
  return {
    all: JSON.parse(outcome) as StackDescription,
    stop: async () => {
      child.kill('SIGINT');
      return (await child).exitCode;
    },
  };
}
