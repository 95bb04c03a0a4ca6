import { z } from '@hono/zod-openapi';
import { ERRORS, type ErrorCode } from '../../lib/errors.ts';

/** Pieces that the route definitions share. */

/** Lower case, as Postgres answers it, so that ids can be compared as text. */
export const id = z.uuid().toLowerCase().openapi({ example: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10' });
export const idParam = z.object({ id });
export const time = z.iso.datetime().openapi({ example: '2026-03-14T09:26:53.589Z' });

/** Text of one line. Control characters are refused: nobody types them, and Postgres takes neither NUL nor half a surrogate pair. */
export const line = (max: number) =>
  z
    .string()
    .trim()
    .min(1, 'expects some text')
    .max(max, `expects at most ${max} characters`)
    // A refinement and not a pattern: JSON Schema knows no flags, and without `u` there is no \p.
    .refine((text) => !/[\p{Cc}\p{Cs}]/u.test(text), 'expects text of one line, without control characters');

export const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20).openapi({ description: 'How many to answer at most.' }),
  cursor: id.optional().openapi({ description: 'The `nextCursor` of the page before.' }),
});

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    nextCursor: id.nullable().openapi({ description: 'Ask for the next page with it; null on the last one.' }),
  });

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().openapi({ description: 'Stable; the sentences are not.' }),
    errors: z.array(z.object({ path: z.string(), message: z.string(), code: z.string().optional() })).optional(),
  })
  .openapi('Problem', {
    description: 'RFC 9457 problem details.',
    example: {
      type: 'urn:bakehouse:problem:invalid_request',
      title: ERRORS.invalid_request.sentence,
      status: 422,
      detail: ERRORS.invalid_request.sentence,
      code: 'invalid_request',
      errors: [{ path: 'title', message: 'expects some text' }],
    },
  });

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

export const jsonBody = <T extends z.ZodType>(schema: T) => ({
  required: true as const,
  content: { 'application/json': { schema } },
});

/** Documents the problems that a route answers, one response per status; handlers throw them. */
export function problems(...codes: ErrorCode[]): object {
  const statuses = [...new Set(codes.map((code) => ERRORS[code].status))];
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: codes
          .filter((code) => ERRORS[code].status === status)
          .map((code) => `\`${code}\`: ${ERRORS[code].sentence}`)
          .join(' '),
        content: { 'application/problem+json': { schema: problemSchema } },
      },
    ]),
  );
}

/** What every route that wants a token may answer. */
export const commonProblems = (...codes: ErrorCode[]) =>
  problems('unauthorized', 'forbidden', 'invalid_request', 'too_many_requests', 'unavailable', ...codes);

export const security = [{ bearer: [] }];
