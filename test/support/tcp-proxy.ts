import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  /** The target's URL with the proxy's host and port. */
  url: string;
  /** Lets bytes through: the state it starts in. */
  pass(): Promise<void>;
  /** Cuts every connection and refuses new ones, as a server that is down does. */
  refuse(): Promise<void>;
  /** Keeps connections open but moves no byte, as a server that hangs does. */
  stall(): void;
  /** The same for the connections that are open now, while new ones pass: what a failover leaves behind. */
  stallOpen(): void;
  /** Stalls every connection that sends this text from now on, to tell one client from another at the same address. */
  stallWhere(text: string): void;
  /** Lets this text through and then moves no byte of its connection: a client that froze when it had just asked. */
  stallAfter(text: string): void;
  close(): Promise<void>;
}

/** A proxy before Postgres or Redis, to have outages without touching a server that others use. */
export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  /** Of those that move no byte. */
  const stalled = new WeakSet<Socket>();
  let stallsNew = false;
  let stallText: string | undefined;
  let lastText: string | undefined;

  const stall = (socket: Socket) => {
    stalled.add(socket);
    socket.pause();
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (stallText !== undefined && from === client && chunk.includes(stallText)) {
          stall(client);
          return stall(upstream);
        }
        if (!to.write(chunk)) from.pause();
        if (lastText !== undefined && from === client && chunk.includes(lastText)) {
          stall(client);
          stall(upstream);
        }
      });
      to.on('drain', () => {
        if (!stalled.has(from)) from.resume();
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (stallsNew) stall(from);
    }
  });

  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const refuse = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };

  const port = await listen(0);
  const url = new URL(targetUrl);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    async pass() {
      stallsNew = false;
      stallText = undefined;
      lastText = undefined;
      for (const socket of sockets) {
        stalled.delete(socket);
        socket.resume();
      }
      if (!server.listening) await listen(port);
    },
    refuse,
    stall() {
      stallsNew = true;
      for (const socket of sockets) stall(socket);
    },
    stallOpen() {
      for (const socket of sockets) stall(socket);
    },
    stallWhere(text) {
      stallText = text;
    },
    stallAfter(text) {
      lastText = text;
    },
    close: refuse,
  };
}
