import { z } from '@hono/zod-openapi';
import { ids } from './examples.ts';

/** Pieces that the route definitions share. */

/** Lower case, as Postgres answers it, so that ids can be compared as text. */
export const id = z.uuid().toLowerCase().openapi({ example: ids.exercise });
/** The thing that a path names; the example is one of its kind. */
export const idParam = (example: string) => z.object({ id: id.openapi({ example }) });
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
  limit: z.coerce.number().int().min(1).max(100).default(20).openapi({
    description: 'How many to answer at most.',
    example: 20,
  }),
  cursor: id.optional().openapi({ description: 'The `nextCursor` of the page before.', example: ids.cursor }),
});

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    nextCursor: id.nullable().openapi({ description: 'Ask for the next page with it; null on the last one.' }),
  });

/** An answer with a body. The example is shown to readers and held to the schema by a test. */
export const json = <T extends z.ZodType>(schema: T, description: string, example: z.input<T>) => ({
  description,
  content: { 'application/json': { schema, example } },
});

/** What a route takes as its body. */
export const jsonBody = <T extends z.ZodType>(schema: T, example: z.input<T>) => ({
  required: true as const,
  content: { 'application/json': { schema, example } },
});
