import { rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import getPort from 'get-port';
import type { Logger } from '../log.ts';
import { livingProcess, recordOf } from './process-record.ts';

export interface ServerCommand {
  /** As it stands in messages: "Postgres". */
  name: string;
  file: string;
  args: string[];
  /** Written to its standard input, which is then closed. */
  input: string;
  /** The account to run as, where this process is root and the server may not be. */
  account?: { uid: number; gid: number } | undefined;
  /** The line of its output that says it takes connections. */
  readyLine: RegExp;
  /** What asks it to stop, hardest last, and how long each may take. */
  stopSignals: readonly { signal: NodeJS.Signals; waitMs: number }[];
  /** Where its pid is kept, so that the next run can end it should it outlive this one. */
  recordFile: string;
}

export interface SupervisedServer {
  readonly port: number;
  /** Of the server that runs right now; null while it is being started again and after `stop`. */
  readonly pid: number | null;
  /** Ends the server within the sum of its stop signals' waits; never started again after. */
  stop(): Promise<void>;
}

export interface Service {
  /** Holds the password: not for logs. */
  url: string;
  /** Null where somebody else runs it. */
  server: SupervisedServer | null;
}

export interface OwnService extends Service {
  server: SupervisedServer;
}

interface RunningServer {
  pid: number;
  ended: Promise<string>;
}

const START_DEADLINE_MS = 60_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
const TAIL_LINES = 15;

/**
 * Starts a server on a free port of 127.0.0.1 and keeps it running there: whenever it dies it is started again on the
 * same port, unless something else has taken that over in the meantime. Rejects where the first start fails.
 */
export async function superviseServer(
  commandFor: (port: number) => ServerCommand,
  log: Logger,
): Promise<SupervisedServer> {
  const stopping = new AbortController();
  const { command, port, first } = await startOnFreePort(commandFor, stopping.signal, log);
  let current: RunningServer | null = first;

  const keepRunning = async () => {
    while (current) {
      const reason = await current.ended;
      current = null;
      if (stopping.signal.aborted) return;
      log.warn({ service: command.name, reason }, 'service died, starting it again');
      current = await startAgain(command, port, stopping.signal, log);
    }
  };
  const kept = keepRunning();

  return {
    port,
    get pid() {
      return current?.pid ?? null;
    },
    async stop() {
      stopping.abort();
      if (current) await endProcess(command, current.pid, current.ended);
      await kept;
      await rm(command.recordFile, { force: true });
    },
  };
}

async function startOnFreePort(commandFor: (port: number) => ServerCommand, signal: AbortSignal, log: Logger) {
  for (let attempt = 1; ; attempt++) {
    const port = await getPort({ host: '127.0.0.1' });
    const command = commandFor(port);
    if (attempt === 1) await endOrphan(command, log);
    try {
      return { command, port, first: await startOnce(command, signal, log) };
    } catch (error) {
      // Another process may take the port between our finding it free and the server's binding it.
      const portTaken = error instanceof Error && /address already in use/i.test(error.message);
      if (!portTaken || attempt === 3) throw error;
    }
  }
}

async function startAgain(
  command: ServerCommand,
  port: number,
  signal: AbortSignal,
  log: Logger,
): Promise<RunningServer | null> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return null;
    if (await answers(port)) continue;
    try {
      return await startOnce(command, signal, log);
    } catch (error) {
      if (signal.aborted) return null;
      log.error({ err: error, service: command.name }, 'service could not be started again');
    }
  }
}

/** Resolves when the server takes connections; otherwise it has been ended and the error carries its last lines. */
async function startOnce(command: ServerCommand, signal: AbortSignal, log: Logger): Promise<RunningServer> {
  const child = execa(command.file, command.args, {
    input: command.input,
    all: true,
    buffer: false,
    reject: false,
    // Its own process group: a Ctrl-C in the terminal must reach us, who stop it last, and not the server.
    detached: true,
    // The user's PG* and other variables must not change what the server does; LC_ALL keeps its messages readable.
    extendEnv: false,
    env: { LC_ALL: 'C' },
    cwd: '/',
    ...command.account,
  });
  const ended = new Promise<string>((resolve) => {
    // 'exit' and not the promise, which also waits for the output: a surviving grandchild would hold that open.
    child.once('exit', (code, bySignal) => resolve(bySignal ?? `exit status ${code}`));
    void child.then((result) => resolve(result.originalMessage ?? 'ended'));
  });

  const tail: string[] = [];
  const ready = new Promise<'ready'>((resolve) => {
    createInterface({ input: child.all }).on('line', (line) => {
      log.debug({ service: command.name, line });
      tail.push(line);
      if (tail.length > TAIL_LINES) tail.shift();
      if (command.readyLine.test(line)) resolve('ready');
    });
  });

  const { pid } = child;
  if (pid === undefined) throw new Error(`${command.name} could not be started: ${await ended}`);
  const releaseLeash = leash(pid, command.stopSignals[0]?.signal ?? 'SIGKILL');
  void ended.then(releaseLeash);
  const waited = new AbortController();
  const late = delay(START_DEADLINE_MS, 'late', { signal: AbortSignal.any([waited.signal, signal]) }).catch(
    () => 'stopped',
  );
  try {
    await writeFile(command.recordFile, JSON.stringify((await recordOf(pid)) ?? null), { mode: 0o600 });
    const outcome = await Promise.race([ready, ended, late]);
    if (outcome === 'ready') return { pid, ended };
    throw new Error(`${command.name} did not start (${outcome}):\n${tail.join('\n')}`);
  } catch (error) {
    await endProcess(command, pid, ended);
    throw error;
  } finally {
    waited.abort();
  }
}

/**
 * Ends the server when this process is gone, however it went. The small shell waits for the end of its standard input,
 * which the kernel closes even when we are killed by SIGKILL; neither an exit hook nor a signal handler would run then.
 * Linux's PDEATHSIG would do too, but not on macOS.
 */
function leash(pid: number, signal: NodeJS.Signals): () => void {
  const script = `read -r _; kill -${signal.slice(3)} $1; n=0; while kill -0 $1 && [ $n -lt 10 ]; do sleep 1; n=$((n+1)); done; kill -KILL $1`;
  const shell = execa('/bin/sh', ['-c', script, 'bakehouse-leash', String(pid)], {
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'ignore',
    reject: false,
    detached: true,
  });
  return () => void shell.kill('SIGKILL');
}

async function endProcess(command: ServerCommand, pid: number, ended: Promise<unknown>): Promise<void> {
  for (const { signal, waitMs } of command.stopSignals) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    const waited = new AbortController();
    const late = delay(waitMs, 'late', { signal: waited.signal }).catch(() => 'late');
    const outcome = await Promise.race([ended, late]);
    waited.abort();
    if (outcome !== 'late') return;
  }
  throw new Error(`${command.name} (process ${pid}) does not stop.`);
}

/** A server that outlived the run which started it would write to the same files as ours. */
async function endOrphan(command: ServerCommand, log: Logger): Promise<void> {
  const orphan = await livingProcess(command.recordFile);
  if (!orphan) return;
  log.warn({ service: command.name, pid: orphan.pid }, 'ending the service that an earlier run left behind');
  const gone = new AbortController();
  const ended = (async () => {
    while (!gone.signal.aborted && (await livingProcess(command.recordFile))) await delay(50);
  })();
  await endProcess(command, orphan.pid, ended).finally(() => gone.abort());
}

/** Whether anything accepts connections on that port of 127.0.0.1. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const settle = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(1000, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}
