import type { ComposeLine } from '../../lib/media/contract.ts';

/** Lines kept for a caller that reads slowly; progress beyond them is left out, what happened is not. */
const KEPT_LINES = 64;

export interface LineStreamOptions {
  /** The last line is said again after so long without another one. */
  heartbeatMs: number;
  /** Whoever takes no line for so long is gone. */
  unreadMs: number;
  /** Fires when the work must end: the caller has gone away, or the service is stopping. */
  signal: AbortSignal;
  /** Closes the connection to a caller that does not read. */
  hangUp: () => void;
  /** Resolves to the last line, whatever happens, with nothing of the work running on. */
  work: (signal: AbortSignal, emit: (line: ComposeLine) => void) => Promise<ComposeLine>;
}

/**
 * The NDJSON answer of a work under way. The work never waits for its reader, and no reader makes it grow: lines wait in
 * the kernel's buffers, then here, then progress is left out. Its end, and with it its slot, does not hang on a reader
 * either: a process that is stopped but alive takes lines for hours into its buffers, and its work then simply ends; a
 * machine that vanished is given up by the kernel after some 15 minutes (tcp_retries2), which closes the connection.
 */
export function lineStream({ heartbeatMs, unreadMs, signal, hangUp, work }: LineStreamOptions) {
  const gone = new AbortController();
  const encoder = new TextEncoder();
  let heartbeat: NodeJS.Timeout | undefined;
  const leave = () => {
    clearInterval(heartbeat);
    gone.abort();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let last: ComposeLine = { type: 'progress', stage: 'stage', percent: 0, etaMs: null };
        let takenAt = performance.now();
        const send = (line: ComposeLine) => {
          if (line.type === 'progress') last = line;
          heartbeat?.refresh();
          if (gone.signal.aborted) return;
          const full = (controller.desiredSize ?? 0) <= 0;
          if (!full) takenAt = performance.now();
          if (performance.now() - takenAt > unreadMs) {
            leave();
            hangUp();
          } else if (!full || line.type !== 'progress') {
            controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
          }
        };
        heartbeat = setInterval(() => send(last), heartbeatMs);
        void work(AbortSignal.any([gone.signal, signal]), send).then((line) => {
          send(line);
          clearInterval(heartbeat);
          if (!gone.signal.aborted) controller.close();
        });
      },
      cancel: leave,
    },
    new CountQueuingStrategy({ highWaterMark: KEPT_LINES }),
  );
}
