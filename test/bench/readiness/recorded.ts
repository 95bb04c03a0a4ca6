import { z } from 'zod';

/** An answer as it came over the wire, to be given again. */
export const answerSchema = z.object({
  path: z.string(),
  status: z.number(),
  headers: z.record(z.string(), z.string()),
  body: z.string().nullable(),
});
export type Recorded = z.infer<typeof answerSchema>;

/** Node's server adds these to every answer by itself. */
const NODES_OWN = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']);

/** Asks once and keeps what came. */
export async function record(url: string, request: Record<string, string>): Promise<Recorded> {
  const response = await fetch(url, { headers: request });
  const text = await response.text();
  return {
    path: new URL(url).pathname,
    status: response.status,
    headers: Object.fromEntries([...response.headers].filter(([name]) => !NODES_OWN.has(name))),
    body: text === '' ? null : text,
  };
}
