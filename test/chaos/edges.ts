import { type Api, type ApiAnswer, createApi } from '../../lib/client/client.ts';
import { pause } from './patience.ts';

/** How long one edge may take, and how long all of them together until somebody gives up. */
const CALL_MS = 10_000;
const GIVE_UP_MS = 90_000;
const PAUSE_MS = 250;

export interface EdgeAnswer<T> {
  body: T;
  edge: string;
  tries: number;
}

/** One call of the API, to be made to whichever edge answers. */
type Call<T> = (api: Api) => Promise<ApiAnswer<T>>;

/** No edge answered as it should. */
export class EdgeRefusal extends Error {}

/** The API as a client with two addresses and some patience sees it. */
export function createEdges(urls: readonly string[], signal: AbortSignal) {
  let turn = 0;

  const once = <T>(url: string, token: string, call: Call<T>) =>
    call(createApi(url, token, { signal, timeoutMs: CALL_MS }));

  return {
    urls,
    once,
    /**
     * Asks one edge after the other, beginning with another one each time, until one answers below 500. Throws an
     * `EdgeRefusal` for a 4xx, and where no edge has answered within a minute and a half.
     */
    ask: async <T>(token: string, call: Call<T>): Promise<EdgeAnswer<T>> => {
      const begun = performance.now();
      const first = turn++;
      let last = '';
      for (let tries = 1; performance.now() - begun < GIVE_UP_MS && !signal.aborted; tries++) {
        const edge = urls[(first + tries) % urls.length] ?? '';
        try {
          const { data, error, response } = await once(edge, token, call);
          if (response.ok) return { body: data as T, edge, tries };
          last = `${response.url}: ${response.status} ${JSON.stringify(error)}`;
          if (response.status < 500) break;
        } catch (error) {
          last = String(error);
        }
        await pause(PAUSE_MS, signal);
      }
      throw new EdgeRefusal(last || 'stopped');
    },
  };
}
export type Edges = ReturnType<typeof createEdges>;
