import type { Context } from 'hono';
import type { z } from 'zod';
import { AppError } from '../../lib/errors.ts';

/** Checks what came from outside; `invalid_request` names every field that is wrong. */
export function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new AppError('invalid_request', {
    issues: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })),
  });
}

/** The largest body takes a tenth of that over a poor line: who needs longer drips it to hold a connection. */
const BODY_MS = 30_000;

/** Reads and checks a JSON body, which must be there within `deadlineMs`. */
export async function parseBody<T>(c: Context, schema: z.ZodType<T>, deadlineMs = BODY_MS): Promise<T> {
  let value: unknown;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // Not the fault of what is asked for, so whoever asked may try again. The server hangs up on what is still to come.
    const error = new AppError('malformed_body', { detail: `not there after ${deadlineMs} ms`, retryable: true });
    timer = setTimeout(() => reject(error), deadlineMs);
  });
  try {
    value = await Promise.race([c.req.json(), late]);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('invalid_request', { issues: [{ path: '', message: 'expects JSON' }], cause: error });
  } finally {
    clearTimeout(timer);
  }
  return parse(schema, value);
}
