import { z } from 'zod';

/** Every kind of job: its queue and what it carries. Payloads hold ids only; the truth is in Postgres. */
export const JOBS = {
  render: {
    queue: 'renders',
    payload: z.strictObject({ renderId: z.uuid(), generation: z.int().min(0), recipeHash: z.string() }),
  },
  webhook: {
    queue: 'webhooks',
    payload: z.strictObject({ eventId: z.uuid() }),
  },
} as const satisfies Record<string, { queue: string; payload: z.ZodType }>;

export type JobKind = keyof typeof JOBS;
export type JobPayload<K extends JobKind> = z.output<(typeof JOBS)[K]['payload']>;

/** How a job ends. Nothing is decided by the queue: a job that is to run again says when. */
export type Outcome =
  /** Finished, or nothing to do: `note` says which. */
  { kind: 'done'; note: string } | { kind: 'later'; note: string; delayMs: number };

export const done = (note: string): Outcome => ({ kind: 'done', note });
export const later = (note: string, delayMs: number): Outcome => ({
  kind: 'later',
  note,
  delayMs: Math.max(0, Math.round(delayMs)),
});
