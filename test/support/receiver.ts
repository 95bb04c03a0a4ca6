import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

export interface ReceivedWebhook {
  headers: IncomingHttpHeaders;
  body: string;
  /** The `webhook-id`. */
  id: string;
  at: number;
}

export interface Receiver {
  url: string;
  received: ReceivedWebhook[];
  /** How each is answered; by default with 204 at once. One that does not answer keeps the sender waiting. */
  answer: (response: ServerResponse, nth: number) => void;
  close(): Promise<void>;
}

/** A clinic's server that takes webhooks. */
export async function startReceiver(): Promise<Receiver> {
  const receiver: Receiver = {
    url: '',
    received: [],
    answer: (response) => response.writeHead(204).end(),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const id = String(request.headers['webhook-id']);
    receiver.received.push({ headers: request.headers, body, id, at: performance.now() });
    receiver.answer(response, receiver.received.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;
}

/** What a receiver does with it first: the payload, where the signature is by this secret. Throws where it is not. */
export const verified = ({ headers, body }: ReceivedWebhook, secret: string) =>
  new Webhook(secret).verify(body, headers as Record<string, string>) as {
    type: string;
    timestamp: string;
    data: Record<string, unknown>;
  };
