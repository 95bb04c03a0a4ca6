import type { RenderStatus } from './render-states.ts';

/** One item of a programme in playing order. */
export interface ReadinessItem {
  itemId: string;
  renderId: string | null;
  status: RenderStatus | null;
  errorCode: string | null;
  errorSentence: string | null;
}

export interface Readiness {
  status: 'preparing' | 'ready' | 'failed';
  total: number;
  ready: number;
  /** How many items from the first on already play, for players that can hold. */
  readyThrough: number;
  /** With a sentence for the clinic, and one for the patient, who can do nothing about it. */
  failed: { itemId: string; renderId: string | null; code: string; sentence: string; patientSentence: string }[];
}

const FAILED = 'This video could not be prepared. Your clinic has been told.';
const CANCELLED = 'This video is not being prepared any more. Please ask your clinic.';

/**
 * What a patient may be told: `ready` only when every item plays, `failed` as soon as one cannot be made, otherwise
 * `preparing`. A programme without items is never ready.
 */
export function readinessOf(items: readonly ReadinessItem[]): Readiness {
  const ready = items.filter((item) => item.status === 'ready').length;
  const firstUnready = items.findIndex((item) => item.status !== 'ready');
  const failed = items
    .filter((item) => item.status === 'failed')
    .map(({ itemId, renderId, errorCode, errorSentence }) => ({
      itemId,
      renderId,
      code: errorCode ?? 'internal',
      sentence: errorSentence ?? 'This video could not be made.',
      patientSentence: errorCode === 'cancelled' ? CANCELLED : FAILED,
    }));
  const done = items.length > 0 && ready === items.length;
  return {
    status: failed.length > 0 ? 'failed' : done ? 'ready' : 'preparing',
    total: items.length,
    ready,
    readyThrough: firstUnready === -1 ? items.length : firstUnready,
    failed,
  };
}
