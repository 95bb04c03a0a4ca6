import { execa } from 'execa';
import { afterEach } from 'vitest';
import type { Env } from '../../lib/config/env.ts';
import { built } from './built.ts';
import { waitFor } from './wait.ts';

/**
 * Starts apps as processes of their own, with nothing in their environment but PATH and what is given. They live until
 * the test ends, or all tests with `until: afterAll`, and no longer than `timeoutMs`.
 */
export function useAppProcesses({ until = afterEach as (end: () => Promise<void>) => void, timeoutMs = 25_000 } = {}) {
  const running: (PromiseLike<unknown> & { kill(signal: 'SIGKILL'): boolean })[] = [];
  until(async () => {
    for (const child of running.splice(0)) {
      child.kill('SIGKILL');
      await child;
    }
  });

  const spawnApp = (app: string, env: Env) => {
    const child = execa(process.execPath, [built(`apps/${app}/main.ts`)], {
      env: { PATH: process.env.PATH, ...env },
      extendEnv: false,
      reject: false,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    running.push(child);
    return child;
  };

  const startApp = async (app: string, env: Env) => {
    const child = spawnApp(app, env);
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    await waitFor(() => output.includes('\n'), { label: `the ready line of ${app}`, timeoutMs });
    return { child, ready: JSON.parse(output) as Record<string, unknown> };
  };

  return { spawnApp, startApp };
}
