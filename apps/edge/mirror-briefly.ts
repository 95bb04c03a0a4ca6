import { withDeadline } from '../../lib/queue/queues.ts';
import type { EdgeDeps } from './deps.ts';

/** How long a request waits for the queue before it answers; what is committed is safe without it. */
const MIRROR_WAIT_MS = 250;

/** Tells the queue what a request has changed; what takes longer goes on after the answer. */
export async function mirrorBriefly(mirror: EdgeDeps['mirror'], renders: readonly { id: string }[]): Promise<void> {
  await withDeadline(mirror.dispatch(renders), MIRROR_WAIT_MS).catch(() => undefined);
}
