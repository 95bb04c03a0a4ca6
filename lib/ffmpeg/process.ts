import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { AppError, toAppError } from '../errors.ts';

/** How much of a child's stderr is kept: the end, where the reason stands. */
const STDERR_TAIL_BYTES = 8 * 1024;

export interface SuperviseOptions {
  path: string;
  args: readonly string[];
  signal?: AbortSignal | undefined;
  /** Hard limit of the child's life. */
  deadlineMs: number;
  /** The child is killed when `touch` was not called for so long; none where undefined. */
  silenceMs?: number | undefined;
  /** Fed to the child; its failure kills the child and becomes the failure of the run. */
  stdin?: AsyncIterable<Uint8Array> | undefined;
  /** Reads the child's stdout to its end; its failure kills the child. Unread stdout is not opened at all. */
  stdout?: ((stream: Readable) => Promise<unknown>) | undefined;
  /** Reads file descriptor 3. */
  side?: ((chunk: string, touch: () => void) => void) | undefined;
}

export interface SuperviseResult {
  /** Exit status. */
  code: number;
  stderrTail: string;
  stderrLines: number;
}

/**
 * Runs one child process and resolves when it has exited and its pipes are read, so that whoever counts processes may
 * count it as gone. Why a run was ended is what was decided here (aborted, silent, timeout, a reader's failure), never
 * guessed from the signal's name: the kernel's out-of-memory killer sends SIGKILL too.
 *
 * Ending means SIGKILL and destroyed pipes: ffmpeg ignores one SIGTERM under -nostdin, and `close` never comes while an
 * unread stdout is paused, so `exit` is what is waited for.
 */
export async function supervise(options: SuperviseOptions): Promise<SuperviseResult> {
  const { signal, stdin, stdout, side } = options;
  if (signal?.aborted) throw new AppError('aborted');
  const child = spawn(options.path, options.args, {
    stdio: [stdin ? 'pipe' : 'ignore', stdout ? 'pipe' : 'ignore', 'pipe', ...(side ? (['pipe'] as const) : [])],
    windowsHide: true,
  });

  let intent: AppError | undefined;
  const end = (cause: AppError) => {
    intent ??= cause;
    child.kill('SIGKILL');
    for (const stream of child.stdio) stream?.destroy();
  };
  const onAbort = () => end(new AppError('aborted'));
  signal?.addEventListener('abort', onAbort, { once: true });

  const deadline = setTimeout(
    () => end(new AppError('ffmpeg_timeout', { detail: `not finished after ${options.deadlineMs} ms` })),
    options.deadlineMs,
  );
  const silence =
    options.silenceMs === undefined
      ? undefined
      : setTimeout(
          () => end(new AppError('ffmpeg_silent', { detail: `no progress for ${options.silenceMs} ms` })),
          options.silenceMs,
        );
  const touch = () => silence?.refresh();

  try {
    const exited = exitOf(child, (error) => {
      intent ??= new AppError('ffmpeg_failed', {
        detail: `cannot run ${options.path}: ${error.message}`,
        cause: error,
      });
    });
    const tail = readTail(child);
    const sideRead = side ? readSide(child, (chunk) => side(chunk, touch)) : undefined;
    const fed = stdin ? feed(child, stdin, end) : undefined;
    const read = stdout ? consume(child, stdout, end, touch) : undefined;
    const code = await exited;
    // From here on a slow reader may take its time: a finished encode is not a timeout.
    clearTimeout(deadline);
    clearTimeout(silence);
    await Promise.all([tail.ended, sideRead, fed, read]);
    if (intent) throw intent;
    // Not by us: the out-of-memory killer, or an operator. Whatever it has written says nothing about its input.
    if (code === null) throw new AppError('ffmpeg_failed', { detail: `killed from outside: ${tail.text()}` });
    return { code, stderrTail: tail.text(), stderrLines: tail.lines() };
  } finally {
    clearTimeout(deadline);
    clearTimeout(silence);
    signal?.removeEventListener('abort', onAbort);
  }
}

function exitOf(child: ChildProcess, onSpawnError: (error: Error) => void): Promise<number | null> {
  return new Promise((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.on('error', (error) => {
      onSpawnError(error);
      if (child.pid === undefined) resolve(null);
    });
  });
}

function readTail(child: ChildProcess) {
  let kept = Buffer.alloc(0);
  let newlines = 0;
  const stream = child.stderr;
  stream?.on('data', (chunk: Buffer) => {
    for (const byte of chunk) if (byte === 0x0a) newlines += 1;
    kept = Buffer.concat([kept, chunk]);
    if (kept.length > STDERR_TAIL_BYTES) kept = kept.subarray(kept.length - STDERR_TAIL_BYTES);
  });
  return {
    ended: stream ? settled(stream) : Promise.resolve(),
    text: () => kept.toString('utf8').trim(),
    lines: () => newlines,
  };
}

function readSide(child: ChildProcess, onChunk: (chunk: string) => void): Promise<void> {
  const stream = child.stdio[3] as Readable;
  stream.setEncoding('utf8');
  stream.on('data', onChunk);
  return settled(stream);
}

/** A pipe that ended or was destroyed; either way there is nothing more to read. */
async function settled(stream: Readable): Promise<void> {
  await finished(stream).catch(() => undefined);
}

async function feed(child: ChildProcess, source: AsyncIterable<Uint8Array>, end: (cause: AppError) => void) {
  const sink = child.stdin as Writable;
  try {
    await pipeline(source, sink);
  } catch (error) {
    // A child that left early closes its stdin; then its exit status tells why, not the broken pipe.
    if (!isPipeGone(error)) end(toAppError(error));
  }
}

async function consume(
  child: ChildProcess,
  reader: (stream: Readable) => Promise<unknown>,
  end: (cause: AppError) => void,
  touch: () => void,
) {
  const stream = child.stdout as Readable;
  stream.on('data', touch).pause();
  try {
    await reader(stream);
    stream.resume();
  } catch (error) {
    end(toAppError(error));
  }
}

function isPipeGone(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return (
    code === 'EPIPE' ||
    code === 'ECONNRESET' ||
    code === 'ERR_STREAM_PREMATURE_CLOSE' ||
    code === 'ERR_STREAM_DESTROYED' ||
    code === 'ERR_STREAM_UNABLE_TO_PIPE'
  );
}
