import { createHash } from 'node:crypto';
import type { Viewer } from '../../lib/db/viewer.ts';
import { AppError } from '../../lib/errors.ts';
import type { Statuses } from './statuses.ts';

/** Load balancers cut a silent connection after a minute (60 s at AWS); a wait stays well below. */
export const MAX_WAIT_S = 30;
/** Who waits looks again after so long though nobody rang: the bell is a hint, and Redis may be away. */
const NET_MS = 500;
/** A stream says that it lives, so that nothing between takes it for dead. */
const BEAT_MS = 15_000;
/** Then the client comes again, with a token that is still valid. */
const LONGEST_STREAM_MS = 10 * 60_000;
/** What one person may have waiting at once in one process. */
const MAX_EACH = 20;
/** Events that a stream holds back for a reader who does not take them; each holds all, so later ones may be left out. */
const MAX_BEHIND = 4;

export interface Watching {
  programId: string;
  viewer: Viewer;
  /** Whose it is counted to: `keyOf` a person. */
  key: string;
  /** Aborted when the client has gone. */
  signal: AbortSignal;
}

export interface Watchers {
  /**
   * The readiness object as soon as it is another than the `known` ETag's, or, where none is given, not preparing; after
   * `forMs` at the latest. Throws `not_found`, also later, and `too_many_requests`.
   */
  wait(watching: Watching & { known: string | undefined; forMs: number }): Promise<string>;
  /** The object now and whenever it changes, as server-sent events. Throws the same before the first; later it ends. */
  events(watching: Watching): Promise<ReadableStream<Uint8Array>>;
}

export const etagOf = (text: string) => `"${createHash('sha1').update(text).digest('base64url')}"`;

/** RFC 9110 §13.1.2: a list of tags or a star, compared weakly. */
export const isKnown = (ifNoneMatch: string, tag: string) =>
  ifNoneMatch === tag ||
  ifNoneMatch.trim() === '*' ||
  ifNoneMatch.split(',').some((known) => known.trim().replace(/^W\//, '') === tag);

const isPreparing = (text: string) => (JSON.parse(text) as { status: string }).status === 'preparing';

export function createWatchers(statuses: Statuses, stopping: AbortSignal): Watchers {
  const counts = new Map<string, number>();
  const ears = new Set<() => void>();
  stopping.addEventListener('abort', () => {
    for (const ring of ears) ring();
  });

  const enter = (key: string) => {
    const others = counts.get(key) ?? 0;
    if (others >= MAX_EACH) throw new AppError('too_many_requests', { retryAfterMs: 1_000 });
    counts.set(key, others + 1);
    return () => {
      const left = (counts.get(key) ?? 1) - 1;
      if (left > 0) counts.set(key, left);
      else counts.delete(key);
    };
  };

  const read = async ({ programId, viewer }: Watching) => {
    const text = await statuses.read(programId, viewer);
    if (text === null) throw new AppError('not_found');
    return text;
  };

  /** Listens from now on, so that nothing is missed between a look and the wait after it. */
  const listen = ({ programId, signal }: Watching) => {
    let rung = false;
    let wake: (() => void) | undefined;
    const ring = () => {
      rung = true;
      wake?.();
    };
    const stopListening = statuses.onChange(programId, ring);
    ears.add(ring);
    signal.addEventListener('abort', ring);
    return {
      isOver: () => signal.aborted || stopping.aborted,
      /** Resolves when there may be something new, after `ms` at the latest. */
      next: async (ms: number) => {
        if (!rung) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, ms);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
        }
        rung = false;
        wake = undefined;
      },
      stop: () => {
        stopListening();
        ears.delete(ring);
        signal.removeEventListener('abort', ring);
      },
    };
  };

  return {
    wait: async (watching) => {
      const { known, forMs, key } = watching;
      const isNews = (text: string) => (known === undefined ? !isPreparing(text) : !isKnown(known, etagOf(text)));
      const text = await read(watching);
      if (forMs === 0 || isNews(text)) return text;
      const leave = enter(key);
      const ear = listen(watching);
      try {
        const deadline = performance.now() + forMs;
        for (;;) {
          const now = await read(watching);
          const left = deadline - performance.now();
          if (isNews(now) || left <= 0 || ear.isOver()) return now;
          await ear.next(Math.min(left, NET_MS));
        }
      } finally {
        ear.stop();
        leave();
      }
    },
    events: async (watching) => {
      const first = await read(watching);
      const leave = enter(watching.key);
      const ear = listen(watching);
      let gone = false;
      const encoder = new TextEncoder();
      const follow = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
        const endsAt = performance.now() + LONGEST_STREAM_MS;
        let sent = '';
        let saidAt = 0;
        const say = (words: string) => {
          controller.enqueue(encoder.encode(words));
          saidAt = performance.now();
        };
        say('retry: 1000\n\n');
        for (let text = first; !gone && !ear.isOver() && performance.now() < endsAt; text = await read(watching)) {
          const takes = (controller.desiredSize ?? 0) > 0;
          if (takes && text !== sent) {
            say(`event: readiness\nid: ${etagOf(text)}\ndata: ${text}\n\n`);
            sent = text;
          } else if (takes && performance.now() - saidAt > BEAT_MS) say(':\n\n');
          await ear.next(NET_MS);
        }
      };
      return new ReadableStream<Uint8Array>(
        {
          start: (controller) => {
            // Not awaited: a stream is read while it goes on. It ends in any case, and who wants to know more comes again.
            void follow(controller)
              .catch(() => undefined)
              .finally(() => {
                ear.stop();
                leave();
                if (!gone) controller.close();
              });
          },
          cancel: () => {
            gone = true;
          },
        },
        { highWaterMark: MAX_BEHIND },
      );
    },
  };
}
