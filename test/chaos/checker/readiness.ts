import type { Check, Poll, Violation } from './evidence.ts';
import { grouped } from './grouped.ts';

/**
 * Once any edge has answered `ready`, nobody who asks afterwards hears anything else. Requests that overlap prove
 * nothing: only one sent after the other's answer had come is compared.
 */
export const readyStaysReady: Check = ({ polls }) =>
  [...grouped(polls, (poll) => poll.programId)].flatMap(([programId, own]) => {
    const firstReady = own
      .filter((poll) => poll.status === 'ready')
      .reduce<Poll | null>((first, poll) => (first && first.answeredAt <= poll.answeredAt ? first : poll), null);
    if (firstReady === null) return [];
    return own
      .filter((poll) => poll.status !== 'ready' && poll.askedAt > firstReady.answeredAt)
      .slice(0, 1)
      .map(
        (poll): Violation => ({
          invariant: 'ready-stays-ready',
          detail: `programme ${programId} was ready by ${firstReady.edge}, and ${poll.status} by ${poll.edge} ${poll.askedAt - firstReady.answeredAt} ms later`,
        }),
      );
  });
