import { z } from 'zod';

export const RENDER_STATUSES = ['pending', 'rendering', 'transcoding', 'ready', 'failed'] as const;
export const renderStatus = z.enum(RENDER_STATUSES);
export type RenderStatus = z.infer<typeof renderStatus>;

/** What a move does to the attempts counted on the row. */
type AttemptEffect = 'keep' | 'count' | 'give-back' | 'reset';

interface Move {
  from: readonly RenderStatus[];
  to: RenderStatus;
  attempts: AttemptEffect;
  /** A deliberate requeue: generation + 1, so that the job gets an id that the queue has never seen. */
  newGeneration?: true;
  /** The write must carry the lease token of the claim. */
  fenced?: true;
  /** The exercise's owner is told: a video that was asked for will not come. Not where somebody decided just that. */
  tellsOwner?: true;
}

/**
 * Every way a render changes its state. Nothing else moves a row, and `ready` and `failed` are only ever left by a
 * requeue, which starts a new generation.
 */
export const MOVES = {
  claim: { from: ['pending'], to: 'rendering', attempts: 'count' },
  /** Shutdown, a full media service, a lost queue lock: the attempt was not the recipe's fault. */
  'hand-back': { from: ['rendering'], to: 'pending', attempts: 'give-back', fenced: true },
  /** A failure that trying again may cure. */
  retry: { from: ['rendering'], to: 'pending', attempts: 'keep', fenced: true },
  /** The worker died: its lease ran out. */
  'lease-expired': { from: ['rendering'], to: 'pending', attempts: 'keep' },
  'lease-exhausted': { from: ['rendering'], to: 'failed', attempts: 'keep', tellsOwner: true },
  'dead-letter': { from: ['rendering'], to: 'failed', attempts: 'keep', fenced: true, tellsOwner: true },
  uploaded: { from: ['rendering'], to: 'transcoding', attempts: 'keep', fenced: true },
  finished: { from: ['transcoding'], to: 'ready', attempts: 'keep' },
  'transcode-failed': { from: ['transcoding'], to: 'failed', attempts: 'keep', tellsOwner: true },
  /** The video or its bytes are gone from Bunny: bake again, bounded by the attempts. */
  'transcode-lost': { from: ['transcoding'], to: 'pending', attempts: 'keep' },
  /** Somebody decided that it is not to be made; whoever is at work on it finds its lease gone. */
  cancel: { from: ['pending', 'rendering', 'transcoding'], to: 'failed', attempts: 'keep' },
  requeue: { from: ['failed', 'ready'], to: 'pending', attempts: 'reset', newGeneration: true },
} as const satisfies Record<string, Move>;

export type MoveName = keyof typeof MOVES;

/** A render as far as its life cycle goes. */
export interface RenderLife {
  status: RenderStatus;
  generation: number;
  attempts: number;
}

/** The state after the move, or null where the table does not allow it from here. */
export function applyMove(life: RenderLife, name: MoveName): RenderLife | null {
  const move: Move = MOVES[name];
  if (!move.from.includes(life.status)) return null;
  const attempts = {
    keep: life.attempts,
    count: life.attempts + 1,
    'give-back': Math.max(0, life.attempts - 1),
    reset: 0,
  };
  return {
    status: move.to,
    generation: life.generation + (move.newGeneration ? 1 : 0),
    attempts: attempts[move.attempts],
  };
}

export const isTerminal = (status: RenderStatus) => status === 'ready' || status === 'failed';

/** The job id of a render in BullMQ; a new generation is a new id, because a finished job's id swallows an add. */
export const renderJobId = (recipeHash: string, generation: number) =>
  generation === 0 ? recipeHash : `${recipeHash}-g${generation}`;

/** A pending render, as far as a queue is concerned. */
export interface QueuedRender {
  id: string;
  recipeHash: string;
  generation: number;
}

/** Whether a failed attempt is tried again; `attempts` already counts it. */
export const decideAfterFailure = (
  row: { attempts: number; maxAttempts: number },
  retryable: boolean,
): 'retry' | 'dead-letter' => (retryable && row.attempts < row.maxAttempts ? 'retry' : 'dead-letter');

export interface Backoff {
  baseMs: number;
  maxMs: number;
}

/**
 * Milliseconds to wait before attempt `attempts + 1`: exponential with full jitter, at least a tenth of the step so
 * that a zero draw does not hammer. `random` is in [0, 1).
 */
export function backoffMs({ baseMs, maxMs }: Backoff, attempts: number, random: number): number {
  const step = Math.min(maxMs, baseMs * 2 ** Math.max(0, attempts - 1));
  return Math.round(step * (0.1 + 0.9 * random));
}
