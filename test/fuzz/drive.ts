import { createHash } from 'node:crypto';
import type { DescribedOperation, Document } from '../support/openapi.ts';
import { operationsOf } from '../support/openapi.ts';
import { createVerdict, type Heard } from './judge.ts';
import { OWN_KEY, type PlannedRequest, planOf } from './requests.ts';
import type { Scene } from './scene.ts';

export interface FuzzOptions {
  seed: number;
  requests: number;
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of `npm run fuzz`; absent in `npm test`, which looks for a few seconds. */
    fuzz?: FuzzOptions;
  }
}

export interface Outcome {
  /** How often each status was answered, by operation. */
  counts: Map<string, Map<number, number>>;
  /** What was against the document, each kind once, with the request that showed it first. */
  faults: Map<string, { times: number; request: string; answer: string }>;
}

/** A client has gone by then; so a wait for news ends, and its answer is looked at. */
const PATIENCE_MS = 300;

const digest = (text: string) => createHash('sha256').update(text).digest('hex');

const nameOf = ({ method, path }: DescribedOperation) => `${method} ${path}`;

/** Sends one request after the other to the app and holds every answer to the app's own document. */
export async function fuzz(scene: Scene, { seed, requests }: FuzzOptions): Promise<Outcome> {
  const { app } = scene.edge;
  const document = (await (await app.request('/openapi.json')).json()) as Document;
  const operations = operationsOf(document);
  const verdict = createVerdict(document);
  const counts: Outcome['counts'] = new Map(operations.map((operation) => [nameOf(operation), new Map()]));
  const faults: Outcome['faults'] = new Map();
  for (const planned of planOf(document, operations, seed, requests)) {
    const { request, said } = await prepare(scene, planned);
    const heard = await listen(await app.request(request));
    const name = nameOf(planned.operation);
    const ofOperation = counts.get(name);
    ofOperation?.set(heard.status, (ofOperation.get(heard.status) ?? 0) + 1);
    for (const found of verdict(planned.operation, heard)) {
      const kind = `${heard.status} of ${name}: ${found}`;
      const first = faults.get(kind);
      if (first) first.times += 1;
      else faults.set(kind, { times: 1, request: said, answer: heard.text.slice(0, 400) });
    }
    if (heard.status === 201) remember(scene, planned, heard.text);
  }
  return { counts, faults };
}

/** What a request made can be named by later ones. */
function remember({ known }: Scene, { operation }: PlannedRequest, text: string): void {
  const kind = {
    createExercise: 'exercise',
    createProgram: 'program',
    copyProgram: 'program',
    createSession: 'session',
    createWebhookEndpoint: 'endpoint',
  }[operation.operationId ?? ''];
  const { id } = JSON.parse(text) as { id?: string };
  if (kind !== undefined && id !== undefined) known[kind]?.push(id);
}

async function prepare({ known, files, authorization }: Scene, planned: PlannedRequest) {
  const { operation, caller, path, query, headers, body } = planned;
  const resolve = (text: string) =>
    text.replace(/<(\w+):(\d+)>/g, (whole, kind: string, at: string) => {
      const pool = known[kind];
      return pool?.[Number(at) % pool.length] ?? whole;
    });
  // Half a surrogate pair has no encoding.
  const encode = (text: string) => encodeURIComponent(resolve(text).replace(/\p{Cs}/gu, '\ufffd'));
  const address = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encode(path[name] ?? ''));
  const search = query.map(([name, value]) => `${name}=${encode(value)}`).join('&');
  const url = `http://edge.test${address}${search && `?${search}`}`;
  const token = await authorization(caller);
  const sent = body.kind === 'text' ? resolve(body.text) : body.kind === 'file' ? files[body.name] : undefined;
  const type = body.kind === 'file' ? 'application/octet-stream' : body.kind === 'text' ? body.type : null;
  const key = headers['idempotency-key'] === OWN_KEY && { 'idempotency-key': digest(`${address} ${String(sent)}`) };
  const request = new Request(url, {
    method: operation.method,
    headers: {
      ...headers,
      ...key,
      ...(token !== null && { authorization: token }),
      ...(type !== null && { 'content-type': type }),
    },
    ...(sent !== undefined && { body: sent }),
    ...(operation.method === 'GET' && { signal: AbortSignal.timeout(PATIENCE_MS) }),
  });
  if (type === null) request.headers.delete('content-type');
  const shown = body.kind === 'text' ? sent : body.kind === 'file' ? `<${body.name}>` : '';
  const said = `${caller}: ${operation.method} ${address}${search && `?${search}`} ${JSON.stringify(headers)} ${type ?? ''} ${String(shown).slice(0, 600)}`;
  return { request, said };
}

/** The whole answer; of a stream of events, the first of it. */
async function listen(response: Response): Promise<Heard> {
  const { status, headers } = response;
  if (!headers.get('content-type')?.startsWith('text/event-stream')) {
    return { status, headers, text: await response.text() };
  }
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return { status, headers, text: new TextDecoder().decode(first?.value) };
}

/** Operations down, statuses across. */
export function tableOf({ counts }: Outcome): string {
  const statuses = [...new Set([...counts.values()].flatMap((of) => [...of.keys()]))].sort();
  const width = Math.max(...[...counts.keys()].map((name) => name.length));
  const line = (name: string, cells: (number | string)[]) =>
    `${name.padEnd(width)} ${cells.map((cell) => String(cell).padStart(5)).join('')}`;
  return [
    line('', statuses),
    ...[...counts].map(([name, of]) =>
      line(
        name,
        statuses.map((status) => of.get(status) ?? '·'),
      ),
    ),
  ].join('\n');
}
