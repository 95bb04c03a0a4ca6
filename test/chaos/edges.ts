import { z } from 'zod';
import { pause } from './patience.ts';

/** How long one edge may take, and how long all of them together until somebody gives up. */
const CALL_MS = 10_000;
const GIVE_UP_MS = 90_000;
const PAUSE_MS = 250;

export interface EdgeAnswer {
  body: unknown;
  edge: string;
  tries: number;
}

/** No edge answered as it should. */
export class EdgeRefusal extends Error {}

/** The API as a client with two addresses and some patience sees it. */
export function createEdges(urls: readonly string[], signal: AbortSignal) {
  let turn = 0;

  const once = async (url: string, token: string, method: string, path: string, body?: unknown) => {
    const isFile = body instanceof Blob;
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': isFile ? 'application/octet-stream' : 'application/json' }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
      ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
  };

  return {
    urls,
    once,
    /**
     * Asks one edge after the other, beginning with another one each time, until one answers below 500. Throws an
     * `EdgeRefusal` for a 4xx, and where no edge has answered within a minute and a half.
     */
    ask: async (token: string, method: string, path: string, body?: unknown): Promise<EdgeAnswer> => {
      const begun = performance.now();
      const first = turn++;
      let last = '';
      for (let tries = 1; performance.now() - begun < GIVE_UP_MS && !signal.aborted; tries++) {
        const edge = urls[(first + tries) % urls.length] ?? '';
        try {
          const answer = await once(edge, token, method, path, body);
          if (answer.status < 400) return { body: answer.body, edge, tries };
          last = `${answer.status} ${JSON.stringify(answer.body)}`;
          if (answer.status < 500) break;
        } catch (error) {
          last = String(error);
        }
        await pause(PAUSE_MS, signal);
      }
      throw new EdgeRefusal(`${method} ${path}: ${last || 'stopped'}`);
    },
  };
}
export type Edges = ReturnType<typeof createEdges>;

export const idOf = (body: unknown): string => z.looseObject({ id: z.string() }).parse(body).id;
