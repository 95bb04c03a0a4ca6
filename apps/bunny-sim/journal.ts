import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';

export interface RequestEntry {
  at: string;
  listener: 'stream' | 'storage' | 'cdn';
  method: string;
  path: string;
  /** 0 where the connection broke before an answer. */
  status: number;
  /** Of the request's body, as far as it came. */
  bytes: number;
  /** Sent back, head included. */
  sentBytes: number;
  ms: number;
}

export interface DeliveryEntry {
  at: string;
  guid: string;
  status: number;
  kind: 'normal' | 'doubled' | 'forged' | 'lost';
  /** HTTP status of the receiver, or what went wrong; `undefined` for a lost one. */
  answer: number | string | undefined;
  ms: number;
}

export interface SimEnv {
  Bindings: HttpBindings;
  Variables: { receivedBytes?: number };
}
export type SimContext = Context<SimEnv>;

/** A simulator that runs for days must not grow: the oldest entries go. */
const LONGEST = 10_000;

/** What was asked of the simulator and what it delivered, for those who check on it. Holds no key and no token. */
export class Journal {
  readonly requests: RequestEntry[] = [];
  readonly deliveries: DeliveryEntry[] = [];

  delivery(entry: DeliveryEntry): void {
    this.deliveries.push(entry);
    if (this.deliveries.length > LONGEST) this.deliveries.shift();
  }

  middleware(listener: RequestEntry['listener']): MiddlewareHandler<SimEnv> {
    return async (c, next) => {
      const started = Date.now();
      const { incoming, outgoing } = c.env;
      const { socket } = incoming;
      const writtenBefore = socket.bytesWritten;
      outgoing.once('close', () => {
        this.requests.push({
          at: new Date(started).toISOString(),
          listener,
          method: incoming.method ?? '',
          path: withoutTokens(incoming.url ?? ''),
          status: outgoing.headersSent ? outgoing.statusCode : 0,
          bytes: c.get('receivedBytes') ?? (Number(incoming.headers['content-length'] ?? 0) || 0),
          sentBytes: socket.bytesWritten - writtenBefore,
          ms: Date.now() - started,
        });
        if (this.requests.length > LONGEST) this.requests.shift();
      });
      await next();
    };
  }
}

const withoutTokens = (target: string) => target.replace(/((?:^|[/?&])(?:bcdn_token|token)=)[^&/]*/g, '$1…');
