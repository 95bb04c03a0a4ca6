import createClient, { type Client } from 'openapi-fetch';
import { z } from 'zod';
import type { paths } from './schema.d.ts';

/** The edge's API as one person sees it: every operation of its OpenAPI document, typed by it. */
export type Api = Client<paths, 'application/json' | 'application/problem+json'>;

type NewProgram = paths['/v1/programs']['post']['requestBody']['content']['application/json'];
/** An exercise and its dose, as a programme is given them. */
export type NewItem = NonNullable<NewProgram['sessions']>[number]['items'][number];

export interface ApiOptions {
  /** Ends every call. */
  signal?: AbortSignal;
  /** How long a call that is no upload may take; longer than the edge's longest wait. */
  timeoutMs?: number;
  /** Takes the place of the network. */
  fetch?: (request: Request) => Response | Promise<Response>;
}

/** A video of gigabytes over a thin line takes its time. */
const UPLOAD_MS = 10 * 60_000;

/** The client of an edge at `baseUrl` with a person's token. It retries nothing; a call that takes too long rejects. */
export function createApi(baseUrl: string, token: string, options: ApiOptions = {}): Api {
  const { signal, timeoutMs = 40_000, fetch = globalThis.fetch } = options;
  const api: Api = createClient({
    baseUrl,
    headers: { authorization: `Bearer ${token}` },
    bodySerializer: (body: unknown) => (body instanceof Blob ? body : JSON.stringify(body)),
    fetch: async (request) => {
      // The library takes every body for JSON.
      if (request.method === 'PUT') request.headers.set('Content-Type', 'application/octet-stream');
      const deadline = AbortSignal.timeout(request.method === 'PUT' ? UPLOAD_MS : timeoutMs);
      return fetch(new Request(request, { signal: signal ? AbortSignal.any([signal, deadline]) : deadline }));
    },
  });
  return api;
}

const problem = z.looseObject({
  title: z.string(),
  detail: z.string().optional(),
  code: z.string().optional(),
  errors: z.array(z.looseObject({ message: z.string() })).optional(),
});

/** The API refused something, in its own words. */
export class ApiProblem extends Error {
  readonly status: number;
  /** Of docs/errors.md; undefined where something before the edge answered. */
  readonly code: string | undefined;
  constructor(status: number, answered: unknown) {
    const body = problem.safeParse(answered).data;
    const reasons = body?.errors?.map(({ message }) => message) ?? [];
    super(reasons.length > 0 ? reasons.join(' ') : (body?.detail ?? body?.title ?? `the API answered ${status}`));
    this.name = 'ApiProblem';
    this.status = status;
    this.code = body?.code;
  }
}

/** What a call comes to. */
export interface ApiAnswer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of the answer. Throws `ApiProblem` where the API refused. */
export async function bodyOf<T>(call: Promise<ApiAnswer<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw new ApiProblem(response.status, error);
  return data as T;
}
