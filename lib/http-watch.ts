/**
 * What fetch needs around it to be ended reliably. In Node 20 a garbage collection between request and answer makes
 * fetch forget the signal it was given (undici follows it by a weak reference), and an abort then changes nothing; so
 * every wait for fetch is raced against the signal here, and every body is read through a reader that is let go of.
 */

/** Watches over one exchange. */
export interface Watch {
  /** Fires when the caller aborts, when nothing has moved for too long, or when the exchange is over. */
  signal: AbortSignal;
  /** Something has moved. */
  touch(): void;
  /** The exchange is over: whatever of it is still going on is not wanted any more. */
  stop(): void;
}

/**
 * Ends with the caller, or when `touch` was not called for `silenceMs`. undici's own deadlines (300 s to the first
 * header, 300 s between two pieces of a body) lie behind every silence deadline in use.
 */
export function startWatch(caller: AbortSignal | undefined, silenceMs: number): Watch {
  const controller = new AbortController();
  const follow = () => controller.abort(caller?.reason);
  if (caller?.aborted) follow();
  else caller?.addEventListener('abort', follow, { once: true });
  const timer = setTimeout(() => controller.abort(new Error(`silent for ${silenceMs} ms`)), silenceMs);
  return {
    signal: controller.signal,
    touch: () => timer.refresh(),
    stop: () => {
      clearTimeout(timer);
      caller?.removeEventListener('abort', follow);
      controller.abort();
    },
  };
}

/** The outcome of `work`, or the watch's reason as soon as it ends. What the work fails with later is nobody's concern. */
export async function underWatch<T>(watch: Watch, work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  let leave = () => {};
  const ended = new Promise<never>((_, reject) => {
    leave = () => reject(watch.signal.reason);
    watch.signal.addEventListener('abort', leave, { once: true });
    if (watch.signal.aborted) leave();
  });
  try {
    return await Promise.race([work, ended]);
  } finally {
    watch.signal.removeEventListener('abort', leave);
  }
}

/**
 * The body of an answer, let go of when the watch ends or the reading does: that closes the connection, by which the
 * other side knows that nobody listens. Throws the watch's reason where that ended it.
 */
export async function* bodyOf(response: Response, watch: Watch): AsyncGenerator<Uint8Array> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const letGo = () => void reader.cancel().catch(() => undefined);
  watch.signal.addEventListener('abort', letGo, { once: true });
  if (watch.signal.aborted) letGo();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      watch.signal.throwIfAborted();
      if (done) return;
      watch.touch();
      yield value;
    }
  } finally {
    watch.signal.removeEventListener('abort', letGo);
    letGo();
  }
}

/** The whole body as text. */
export async function textOf(response: Response, watch: Watch): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bodyOf(response, watch)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * No redirect is followed: fetch would carry credentials along to another host, and, to be able to send a body again,
 * keep a copy of all that it sends (nodejs/undici#4058; 600 MB measured for 600 MB). It takes both settings.
 */
export const SENT_ONCE: RequestInit = { redirect: 'error', window: null };
