import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { createSim, SIM_DEFAULTS, type Sim, type SimConfig } from '../../../apps/bunny-sim/sim.ts';
import { createStorageClient } from '../../../lib/bunny/storage-client.ts';
import { createStreamClient } from '../../../lib/bunny/stream-client.ts';
import { type VideoState, videoState } from '../../../lib/bunny/video-state.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';

interface Hook {
  url: string;
  headers: Headers;
  rawBody: Buffer;
  guid: string;
  status: number;
}

/** An HTTP server that keeps the webhooks it gets. */
export async function startReceiver(answerWith = 200) {
  const hooks: Hook[] = [];
  const server = createServer(async (request, response) => {
    const rawBody = await buffer(request);
    const { VideoGuid, Status } = JSON.parse(rawBody.toString());
    const headers = new Headers(request.headers as Record<string, string>);
    hooks.push({ url: request.url ?? '', headers, rawBody, guid: VideoGuid, status: Status });
    response.writeHead(answerWith).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?token=receiver-token`,
    hooks,
    statuses: (guid: string) => hooks.filter((hook) => hook.guid === guid).map((hook) => hook.status),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A running simulator with clients for it; fast unless the config says otherwise. */
export async function startSim(config: Partial<SimConfig> = {}) {
  const dataDir = config.dataDir ?? (await makeTempDir());
  const sim = await createSim({ transcode: 'fast', ...config, dataDir }, { log: silentLog });
  return { ...sim, dataDir, ...clientsOf(sim) };
}
export type RunningSim = Awaited<ReturnType<typeof startSim>>;

function clientsOf(sim: Sim) {
  const { libraryId, streamKey, storageZone, storageKey } = SIM_DEFAULTS;
  const stream = createStreamClient({ baseUrl: sim.streamUrl, libraryId, apiKey: streamKey, timeoutMs: 5000 });
  const storage = createStorageClient({
    baseUrl: sim.storageUrl,
    zone: storageZone,
    accessKey: storageKey,
    timeoutMs: 5000,
  });
  return {
    stream,
    storage,
    state: async (guid: string): Promise<VideoState> => videoState(await stream.get(guid)),
    ended: (guid: string): Promise<VideoState> =>
      waitFor(
        async () => {
          const state = videoState(await stream.get(guid));
          return state.state === 'finished' || state.state === 'failed' ? state : undefined;
        },
        { label: 'the end of the transcode', timeoutMs: 25_000 },
      ),
    faults: async (settings: unknown): Promise<Response> =>
      fetch(`${sim.streamUrl}/sim/faults`, { method: 'POST', body: JSON.stringify(settings) }),
    log: async (): Promise<{
      requests: { at: string; method: string; path: string; status: number; bytes: number }[];
      deliveries: { guid: string; status: number; kind: string; answer: unknown }[];
    }> => (await fetch(`${sim.streamUrl}/sim/log`)).json() as never,
  };
}

/** A request to the stream API by hand, with the read/write key unless `key` says otherwise. */
export const ask = (sim: Sim, method: string, path: string, body?: unknown, key: string = SIM_DEFAULTS.streamKey) =>
  fetch(`${sim.streamUrl}/library/${SIM_DEFAULTS.libraryId}${path}`, {
    method,
    headers: { AccessKey: key },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
