import { z } from 'zod';
import { AppError } from '../../../lib/errors.ts';

const problem = z.looseObject({
  title: z.string(),
  detail: z.string().optional(),
  code: z.string().optional(),
  errors: z.array(z.looseObject({ message: z.string().optional(), sentence: z.string().optional() })).optional(),
});

/** The API refused something, in its own words. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string | undefined;
  constructor(status: number, body: z.infer<typeof problem> | undefined) {
    const reasons = body?.errors?.map((each) => each.sentence ?? each.message).filter(Boolean) ?? [];
    super(reasons.length > 0 ? reasons.join(' ') : (body?.detail ?? body?.title ?? `the API answered ${status}`));
    this.name = 'ApiProblem';
    this.status = status;
    this.code = body?.code;
  }
}

export type Api = ReturnType<typeof createApi>;

/** The edge's API as a person with this token sees it. Answers are parsed by the given schema; refusals are `ApiProblem`. */
export function createApi(baseUrl: string, token: string) {
  const call = async (
    method: string,
    path: string,
    init: { body?: string | Blob; type?: string; timeoutMs: number },
  ) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(init.type && { 'content-type': init.type }) },
      signal: AbortSignal.timeout(init.timeoutMs),
      ...(init.body !== undefined && { body: init.body }),
    });
    const text = await response.text();
    if (!response.ok) throw new ApiProblem(response.status, problem.safeParse(tryJson(text)).data);
    return text === '' ? null : tryJson(text);
  };
  const parse = <T>(schema: z.ZodType<T>, value: unknown, path: string): T => {
    const result = schema.safeParse(value);
    if (!result.success)
      throw new AppError('internal', {
        detail: `${path} answered an unexpected shape: ${z.prettifyError(result.error)}`,
      });
    return result.data;
  };
  return {
    get: async <T>(schema: z.ZodType<T>, path: string) =>
      parse(schema, await call('GET', path, { timeoutMs: 10_000 }), path),
    post: async <T>(schema: z.ZodType<T>, path: string, body: unknown) =>
      parse(
        schema,
        await call('POST', path, { body: JSON.stringify(body), type: 'application/json', timeoutMs: 20_000 }),
        path,
      ),
    patch: async <T>(schema: z.ZodType<T>, path: string, body: unknown) =>
      parse(
        schema,
        await call('PATCH', path, { body: JSON.stringify(body), type: 'application/json', timeoutMs: 20_000 }),
        path,
      ),
    /** Sends a file's bytes. */
    put: async <T>(schema: z.ZodType<T>, path: string, file: Blob) =>
      parse(
        schema,
        await call('PUT', path, { body: file, type: 'application/octet-stream', timeoutMs: 10 * 60_000 }),
        path,
      ),
  };
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
