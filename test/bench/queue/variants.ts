/**
 * Who carries the jobs. All of them run the same handlers of apps/worker, so the same statements on the rows:
 * `bakehouse` the worker as it is, on BullMQ; the others through a queue in Postgres; `no queue` hands the ids over a
 * pipe and forgets them, which no real system may, and is what the handlers alone can do.
 *
 * `ahead` is how these queues are fastest and how the pipeline may not use them: renders that a worker has fetched
 * before it can run them are out of the fair order, and one specialist's only render would wait for all of them.
 */
export const VARIANTS = [
  'bakehouse',
  'pg-boss',
  'graphile-worker',
  'pg-boss ahead',
  'graphile-worker ahead',
  'no queue',
] as const;
export type Variant = (typeof VARIANTS)[number];

/** The rivals that the target names, doing the same: no render is fetched before it can be run. */
export const POSTGRES_QUEUES = ['pg-boss', 'graphile-worker'] as const satisfies Variant[];

export interface Setup {
  variant: Variant;
  databaseUrl: string;
  redisUrl: string;
  prefix: string;
  /** Bakes at once, and webhooks at once, in one worker process: as many handlers of each kind in every variant. */
  concurrency: number;
}

/** How much a queue in Postgres takes at once where that is allowed, and how many connections it has beside those of the handlers. */
export const FETCH_AHEAD = 500;
export const QUEUE_CONNECTIONS = 10;

export interface RenderJob {
  renderId: string;
  generation: number;
  recipeHash: string;
}

export interface WebhookJob {
  eventId: string;
}

/** What the edge's side and the worker's side say to each other where there is no queue. */
export type Handover = { renders: RenderJob[] } | { webhook: WebhookJob };
