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

/** Reads and checks a JSON body. */
export async function parseBody<T>(c: Context, schema: z.ZodType<T>): Promise<T> {
  let value: unknown;
  try {
    value = await c.req.json();
  } catch (error) {
    throw new AppError('invalid_request', { issues: [{ path: '', message: 'expects JSON' }], cause: error });
  }
  return parse(schema, value);
}
