import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import type { Env } from '../../../lib/config/env.ts';
import type { Logger } from '../../../lib/log.ts';

export type AppName = 'edge' | 'worker' | 'media' | 'bunny-sim';

export interface AppProcess {
  /** What its ready line said. */
  ready: Record<string, unknown>;
  /** Of the process that runs right now; null while it is being started again. */
  readonly pid: number | null;
  /** SIGTERM, then SIGKILL after `deadlineMs`. */
  stop(deadlineMs: number): Promise<void>;
}

const READY_DEADLINE_MS = 60_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** An app that ran for so long has not failed to start: the next pause is the first again. */
const STEADY_MS = 30_000;
const TAIL_BYTES = 2_000;

/** What Node is given to run an app: of the sources through tsx where we run from those, else of the build output. */
export function nodeArgs(app: AppName | 'cli'): string[] {
  const here = fileURLToPath(import.meta.url);
  const fromSource = here.endsWith('.ts');
  const main = fileURLToPath(new URL(`../../${app}/main.${fromSource ? 'ts' : 'js'}`, import.meta.url));
  return fromSource ? ['--import', import.meta.resolve('tsx'), main] : [main];
}

/**
 * Starts an app as a child process and keeps it running: whenever it dies it is started again with the same
 * environment, so on the same port. Its log goes to `<logDir>/<app>.log`. Rejects, with the end of that log, where the
 * first start fails. The child goes when this process does, however that ends: it watches the channel between them.
 */
export async function startApp(options: { app: AppName; env: Env; logDir: string; log: Logger }): Promise<AppProcess> {
  const { app, env, logDir, log } = options;
  await mkdir(logDir, { recursive: true });
  const logFile = join(logDir, `${app}.log`);
  const stopping = new AbortController();

  const launch = () => {
    const child = execa(process.execPath, nodeArgs(app), {
      env: env as Record<string, string>,
      extendEnv: false,
      stdin: 'ignore',
      stderr: { file: logFile, append: true },
      ipc: true,
      serialization: 'json',
      buffer: false,
      reject: false,
      // Its own process group: a Ctrl-C in the terminal must reach us, who stop the apps in order.
      detached: true,
    });
    const ended = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? `exit status ${code}`));
      child.once('error', (error) => resolve(error.message));
    });
    const ready = new Promise<Record<string, unknown>>((resolve) => {
      createInterface({ input: child.stdout }).once('line', (line) =>
        resolve(JSON.parse(line) as Record<string, unknown>),
      );
    });
    return { child, ended, ready };
  };

  let current: ReturnType<typeof launch> | null = launch();
  const late = delay(READY_DEADLINE_MS, 'no ready line in time', { signal: stopping.signal, ref: false }).catch(
    () => 'stopped',
  );
  const outcome = await Promise.race([current.ready, current.ended, late]);
  if (typeof outcome === 'string') {
    current.child.kill('SIGKILL');
    throw new Error(`${app} did not start (${outcome}):\n${await tail(logFile)}`);
  }

  const keepRunning = async () => {
    let pauseMs = FIRST_PAUSE_MS;
    while (current) {
      const since = performance.now();
      const reason = await current.ended;
      current = null;
      if (stopping.signal.aborted) return;
      log.warn({ app, reason }, 'app died, starting it again');
      pauseMs = performance.now() - since > STEADY_MS ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      await delay(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      current = launch();
    }
  };
  const kept = keepRunning();

  return {
    ready: outcome,
    get pid() {
      return current?.child.pid ?? null;
    },
    async stop(deadlineMs) {
      stopping.abort();
      const running = current;
      if (running) {
        running.child.kill('SIGTERM');
        const done = new AbortController();
        const tooLate = delay(deadlineMs, 'late', { signal: done.signal }).catch(() => 'done');
        if ((await Promise.race([running.ended, tooLate])) === 'late') {
          log.warn({ app }, 'app did not stop in time and is killed');
          running.child.kill('SIGKILL');
          await running.ended;
        }
        done.abort();
      }
      await kept;
    },
  };
}

async function tail(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.slice(-TAIL_BYTES);
}
