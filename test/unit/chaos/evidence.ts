import type { EventRow, Evidence, RenderRow } from '../../chaos/checker/evidence.ts';

const SECOND = 1_000;
export const PREFIX = 'bakehouse';

/** A history in short: `[to, cause, attempt, token?]` for each event, a second apart. */
export type Life = readonly (readonly [to: EventRow['to'], cause: string, attempt: number, token?: string])[];

export const PLAIN: Life = [
  ['pending', 'published', 0],
  ['rendering', 'claim', 1, 'a'],
  ['transcoding', 'uploaded', 1, 'a'],
  ['ready', 'webhook', 1],
];

let nextId = 1;

/** The events of a life, beginning at `at`; a token is made unique to the render by its id. */
export function eventsOf(renderId: string, life: Life, at = 0): EventRow[] {
  let generation = 0;
  return life.map(([to, cause, attempt, token], index) => {
    const from = life[index - 1]?.[0] ?? null;
    if (from === 'failed' || from === 'ready') generation += 1;
    return {
      ...{ id: nextId++, renderId, generation, from, to, attempt, cause },
      leaseToken: token === undefined ? null : `${renderId}-${token}`,
      errorCode: null,
      at: at + index * SECOND,
    };
  });
}

const hashOf = (id: string) => Buffer.from(id).toString('hex').padEnd(64, '0').slice(0, 64);

/** What a run leaves behind in which these renders lived these lives and everything held. */
export function evidenceOf(lives: Record<string, { life?: Life; fairKey?: string; at?: number }>): Evidence {
  const events = Object.entries(lives).flatMap(([id, { life = PLAIN, at }]) => eventsOf(id, life, at));
  const renders = Object.entries(lives).map(([id, { fairKey = 'ana' }]): RenderRow => {
    const last = events.filter((event) => event.renderId === id).at(-1)!;
    return {
      ...{ id, exerciseId: 'squat', recipeHash: hashOf(id), language: 'en' },
      ...{ status: last.to, generation: last.generation, attempts: last.attempt, maxAttempts: 5 },
      ...{ videoGuid: `video-${id}`, masterSha256: `master-${id}`, manifestUrl: 'manifest', errorCode: null },
      fairKey,
    };
  });
  const videos = renders.map((render) => ({
    guid: `video-${render.id}`,
    title: `${PREFIX} ${render.recipeHash.slice(0, 32)}`,
    state: 'finished' as const,
  }));
  return {
    recipes: renders.length,
    answers: [
      {
        ...{ programId: 'program', by: 'ana', askedAt: 0, answeredAt: 10, tries: 1 },
        counts: { total: renders.length, ready: 0, queued: renders.length, inProgress: 0, failed: 0 },
      },
    ],
    programs: [{ id: 'program', status: 'published', renderIds: renders.map(({ id }) => id) }],
    renders,
    events,
    inbox: videos.flatMap(({ guid }) =>
      [1, 1, 3].map((status) => ({
        ...{ videoGuid: guid, status, applied: true, outcome: 'progress' },
        body: JSON.stringify({ VideoGuid: guid, Status: status }),
      })),
    ),
    deliveries: videos.flatMap(({ guid }) =>
      [1, 1, 3].map((status) => ({ guid, status, kind: 'normal' as const, answer: 200 })),
    ),
    titlePrefix: PREFIX,
    videos: { before: videos, after: videos },
    stored: new Map(renders.map(({ id }) => [id, { masterSha256: `master-${id}`, problem: null }])),
    polls: [
      { programId: 'program', edge: 'one', askedAt: 0, answeredAt: 5, status: 'preparing' },
      { programId: 'program', edge: 'two', askedAt: 10_000, answeredAt: 10_005, status: 'ready' },
      { programId: 'program', edge: 'one', askedAt: 10_010, answeredAt: 10_015, status: 'ready' },
    ],
    incidents: [],
    slots: 2,
  };
}

/** Something the script did, from `from` to `until`. */
export const incident = (
  action: Evidence['incidents'][number]['action'],
  from = 0,
  until = from,
): Evidence['incidents'][number] => ({ action, from, until, struck: true, held: [] });
