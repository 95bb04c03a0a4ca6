import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import type { Action } from '../script.ts';
import { grouped } from './grouped.ts';

/** Everything a run leaves behind, as far as the checks look at it. Times are milliseconds since the epoch. */
export interface Evidence {
  /** How many different recipes the load published. */
  recipes: number;
  answers: Answer[];
  programs: ProgramRow[];
  renders: RenderRow[];
  /** In the order of their ids. */
  events: EventRow[];
  inbox: InboxRow[];
  deliveries: Delivery[];
  /** What our titles at Bunny begin with. */
  titlePrefix: string;
  /** Before and after the reconcile. */
  videos: { before: Video[]; after: Video[] };
  /** What the storage zone holds of each ready render, by render id. */
  stored: ReadonlyMap<string, Stored>;
  polls: Poll[];
  incidents: Incident[];
  /** Renders that all workers together can have under way. */
  slots: number;
}

/** A publish that the load wanted: `counts` are those of the 202, null where none came. */
export interface Answer {
  programId: string | null;
  by: string;
  counts: { total: number; ready: number; queued: number; inProgress: number; failed: number } | null;
  askedAt: number;
  answeredAt: number;
  tries: number;
  /** Why there was no 202. */
  refusal?: string;
}

export interface ProgramRow {
  id: string;
  status: string;
  /** What each item plays. */
  renderIds: (string | null)[];
}

export interface RenderRow {
  id: string;
  exerciseId: string;
  recipeHash: string;
  language: string;
  status: RenderStatus;
  generation: number;
  attempts: number;
  maxAttempts: number;
  videoGuid: string | null;
  masterSha256: string | null;
  manifestUrl: string | null;
  errorCode: string | null;
  fairKey: string;
}

export interface EventRow {
  id: number;
  renderId: string;
  generation: number;
  from: RenderStatus | null;
  to: RenderStatus;
  attempt: number;
  cause: string;
  leaseToken: string | null;
  errorCode: string | null;
  at: number;
}

export interface InboxRow {
  videoGuid: string;
  status: number;
  body: string;
  applied: boolean;
  outcome: string | null;
}

export interface Delivery {
  guid: string;
  status: number;
  kind: 'normal' | 'doubled' | 'forged' | 'lost';
  /** The edge's HTTP status, or what became of the call. */
  answer: number | string | undefined;
}

export interface Video {
  guid: string;
  title: string;
  state: 'created' | 'processing' | 'playable' | 'finished' | 'failed';
}

/** `problem`: what is wrong with the manifest or with a file that it names; null where all is as it says. */
export interface Stored {
  masterSha256: string | null;
  problem: string | null;
}

export interface Poll {
  programId: string;
  edge: string;
  askedAt: number;
  answeredAt: number;
  status: string;
}

/** An action of the script as it came about. */
export interface Incident {
  action: Action;
  from: number;
  until: number;
  /** False where there was nothing to hit: a process that was dead already, a disk that cannot be filled here. */
  struck: boolean;
  note?: string;
  /** The renders that the process hit was at work on. */
  held: string[];
}

export const INVARIANTS = [
  'nothing-lost',
  'failed-explained',
  'legal-history',
  'one-writer',
  'attempts',
  'rows-match-history',
  'one-bake-per-key',
  'no-orphan',
  'ready-plays',
  'inbox',
  'fair',
  'ready-stays-ready',
] as const;
export type Invariant = (typeof INVARIANTS)[number];

export interface Violation {
  invariant: Invariant;
  renderId?: string;
  detail: string;
}

export type Check = (evidence: Evidence) => Violation[];

/** The events of each render, in order. */
export function histories(evidence: Pick<Evidence, 'renders' | 'events'>): { render: RenderRow; events: EventRow[] }[] {
  const byRender = grouped(evidence.events, (event) => event.renderId);
  return evidence.renders.map((render) => ({ render, events: byRender.get(render.id) ?? [] }));
}

/** How often a history goes from one state to another. */
export const countMoves = (events: readonly EventRow[], from: RenderStatus, to: RenderStatus) =>
  events.filter((event) => event.from === from && event.to === to).length;
