import { randomUUID } from 'node:crypto';
import { eq, isNull, sql } from 'drizzle-orm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyWebhook } from '../../../apps/worker/handlers/webhook.ts';
import { workerMetrics } from '../../../apps/worker/metrics.ts';
import { signWebhook } from '../../../lib/bunny/webhook.ts';
import { pipelineSchema } from '../../../lib/config/pipeline.ts';
import { cancelByOperator, requeueByOperator } from '../../../lib/db/operate.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { type Artefacts, claimRender, findRender, markUploaded, recordVideo } from '../../../lib/db/renders.ts';
import { renderEvents, webhookEvents } from '../../../lib/db/schema/index.ts';
import { dueWebhooks, findUnappliedWebhook, replayWebhooks } from '../../../lib/db/webhooks.ts';
import { historyViolations } from '../../../lib/domain/history.ts';
import type { VideoStatus } from '../../../lib/media/contract.ts';
import { createFleet } from '../../../lib/media/fleet.ts';
import { createRegistry } from '../../../lib/metrics.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { type ScriptedMedia, startScriptedMedia } from '../../support/scripted-media.ts';
import { READ_ONLY_KEY, startEdge, type TestEdge } from '../edge/fixture.ts';

let edge: TestEdge;
let media: ScriptedMedia;
let deps: Parameters<typeof applyWebhook>[0];

beforeAll(async () => {
  [edge, media] = await Promise.all([startEdge(), startScriptedMedia()]);
  deps = {
    config: pipelineSchema.parse({}),
    database: edge.deps.database,
    media: createFleet({ targets: [media.url], token: media.token }),
    metrics: workerMetrics(createRegistry('worker')),
    log: silentLog,
  };
});
afterAll(async () => {
  await edge.close();
  await media.close();
});

type Truth = Partial<VideoStatus> & { state: VideoStatus['state'] };

/** What Bunny was seen to send: of a video that it can use, and of one that it cannot. */
const USABLE = [0, 1, 1, 2, 4, 4, 3];
const UNUSABLE = [0, 5];

const bodyOf = (guid: string, status: number, more: object = {}) =>
  JSON.stringify({ IsLiveStreamWebhook: false, VideoLibraryId: 133, VideoGuid: guid, Status: status, ...more });

/** What must leave no trace, with the status that it is answered with. */
const BAD = {
  forged: (guid: string) => ({ body: bodyOf(guid, 5), key: 'not-the-key-of-the-library', answer: 401 }),
  oversize: (guid: string) => ({
    body: bodyOf(guid, 5, { padding: 'x'.repeat(65_536) }),
    key: READ_ONLY_KEY,
    answer: 413,
  }),
  malformed: (guid: string) => ({ body: bodyOf(guid, 5).slice(0, -3), key: READ_ONLY_KEY, answer: 400 }),
  nameless: () => ({ body: JSON.stringify({ VideoLibraryId: 133, Status: 5 }), key: READ_ONLY_KEY, answer: 400 }),
};

const post = (body: string, key: string) =>
  edge.call('POST', '/webhooks/bunnystream', { body, headers: signWebhook(key, Buffer.from(body)) });

/** One thing that happens; `announced` deliveries are applied at once, the others wait for the replay. */
type Step =
  | { kind: 'deliver'; status: number; announced: boolean }
  | { kind: 'bad'; what: keyof typeof BAD }
  | { kind: 'life'; what: 'record' | 'upload' | 'end' };

/** Every delivery at least once, some doubled, in any order; the life of the render goes on anywhere in between. */
const stepsOf = (statuses: readonly number[]): fc.Arbitrary<Step[]> =>
  fc
    .record({
      deliveries: fc
        .tuple(fc.constant(statuses), fc.subarray([...statuses]))
        .chain(([once, again]) => fc.shuffledSubarray([...once, ...again], { minLength: once.length + again.length })),
      announced: fc.infiniteStream(fc.boolean()),
      bad: fc.subarray(Object.keys(BAD) as (keyof typeof BAD)[]),
      places: fc.infiniteStream(fc.nat()),
    })
    .map(({ deliveries, announced, bad, places }) => {
      const at = (length: number) => Number(places.next().value) % (length + 1);
      const steps: Step[] = deliveries.map((status) => ({
        ...{ kind: 'deliver', status },
        announced: Boolean(announced.next().value),
      }));
      for (const what of bad) steps.splice(at(steps.length), 0, { kind: 'bad', what });
      const life = [at(steps.length), at(steps.length), at(steps.length)].sort((a, b) => b - a);
      for (const [nth, what] of (['end', 'upload', 'record'] as const).entries())
        steps.splice(life[nth] ?? 0, 0, { kind: 'life', what });
      return steps;
    });

async function aClaimedRender() {
  const { db } = edge;
  await db.execute(sql`truncate exercise_renders, webhook_events, programs cascade`);
  const orgId = await anOrganisation(db);
  const exercise = await anExercise(db, { orgId });
  const programId = await aProgram(db, orgId, [[{ exerciseId: exercise.id }]]);
  const { queued } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
  const lease = { id: queued[0]!.id, token: randomUUID() };
  await claimRender(db, { ...lease, generation: 0, by: 'worker-1', leaseMs: 60_000 });
  return lease;
}

/** A claimed render with what can happen to it from here on. */
async function begin(truth: Truth) {
  const { db } = edge;
  const lease = await aClaimedRender();
  const guid = randomUUID();
  const artefacts: Artefacts = {
    masterSha256: 'b'.repeat(64),
    videoGuid: guid,
    collectionId: null,
    manifestUrl: 'https://cdn/manifest.json',
    captionsUrl: null,
    posterUrl: 'https://cdn/poster.jpg',
    baselines: [],
    durationMs: 10_000,
    warnings: [],
  };
  media.videos.clear();
  media.videos.set(guid, { state: 'processing', lengthSeconds: 0 });
  const live = {
    record: () => recordVideo(db, lease, { guid, masterSha256: artefacts.masterSha256, collectionId: null }),
    upload: () => markUploaded(db, lease, artefacts, 60_000),
    end: async () => media.videos.set(guid, { lengthSeconds: 10, ...truth }),
  };
  const deliver = async (status: number, announced: boolean) => {
    const response = await post(bodyOf(guid, status), READ_ONLY_KEY);
    expect(response.status).toBe(200);
    const { id } = (await response.json()) as { id: string };
    const event = announced ? await findUnappliedWebhook(db, id) : null;
    if (event) await applyWebhook(deps, event);
  };
  return { id: lease.id, guid, live, deliver };
}

const historyOf = (id: string) =>
  edge.db.select().from(renderEvents).where(eq(renderEvents.renderId, id)).orderBy(renderEvents.id);

/** Lets the steps happen to a new render and the replay run until nothing is left; answers how it ended. */
async function happen(steps: readonly Step[], truth: Truth) {
  const { db } = edge;
  const { id, guid, live, deliver } = await begin(truth);
  for (const step of steps) {
    if (step.kind === 'life') await live[step.what]();
    else if (step.kind === 'deliver') await deliver(step.status, step.announced);
    else {
      const { body, key, answer } = BAD[step.what](guid);
      expect((await post(body, key)).status).toBe(answer);
    }
  }
  await replayAll();
  const ended = await findRender(db, id);
  // News after the end is no news, however often it comes.
  for (const status of [3, 4, 5, 3]) await deliver(status, true);
  await replayAll();
  expect(await findRender(db, id)).toEqual(ended);

  const stored = await db.select().from(webhookEvents);
  expect(stored).toHaveLength(steps.filter(({ kind }) => kind === 'deliver').length + 4);
  expect(stored.every(({ appliedAt, videoGuid }) => appliedAt !== null && videoGuid === guid)).toBe(true);
  const events = await historyOf(id);
  expect(historyViolations(events, { whole: true, row: ended! })).toEqual([]);
  return {
    ...{ status: ended!.status, errorCode: ended!.errorCode, hasGuid: ended!.videoGuid === guid },
    causes: events.map(({ cause }) => cause),
  };
}

/** The replay sweep until all is applied, without waiting for the times at which it would look again. */
async function replayAll(): Promise<void> {
  const { db } = edge;
  for (let sweeps = 0; sweeps < 3; sweeps++) {
    const unapplied = await db
      .select({ id: webhookEvents.id })
      .from(webhookEvents)
      .where(isNull(webhookEvents.appliedAt));
    if (unapplied.length === 0) return;
    await replayWebhooks(
      db,
      unapplied.map(({ id }) => id),
    );
    for (const event of await dueWebhooks(db, 100)) await applyWebhook(deps, event);
  }
}

describe('the webhooks of a video', () => {
  const outcomes: [string, readonly number[], Truth, { status: string; errorCode: string | null }][] = [
    ['is finished', USABLE, { state: 'finished' }, { status: 'ready', errorCode: null }],
    ['cannot be used', UNUSABLE, { state: 'failed' }, { status: 'failed', errorCode: 'transcode_failed' }],
    [
      'is finished, but cut off',
      USABLE,
      { state: 'finished', lengthSeconds: 4 },
      { status: 'failed', errorCode: 'transcode_truncated' },
    ],
  ];
  it.each(outcomes)(
    'that %s end in the same state, whatever their order and number, and whenever Bunny’s API knows',
    {
      timeout: 60_000,
    },
    async (_, statuses, truth, end) => {
      await fc.assert(
        fc.asyncProperty(stepsOf(statuses), async (steps) => {
          expect(await happen(steps, truth)).toEqual({
            ...end,
            hasGuid: true,
            causes: ['published', 'claim', 'uploaded', 'webhook'],
          });
        }),
        { numRuns: 8 },
      );
    },
  );

  it('are stored each time, also where their bytes are the same', async () => {
    await edge.db.delete(webhookEvents);
    const guid = randomUUID();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(bodyOf(guid, 3), READ_ONLY_KEY)));
    const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as { id: string }).id));
    expect(new Set(ids).size).toBe(10);
    const stored = await edge.db.select().from(webhookEvents);
    expect(new Set(stored.map(({ body }) => body))).toEqual(new Set([bodyOf(guid, 3)]));
    expect(stored).toHaveLength(10);
  });

  it('that are applied by many at once settle the render once', async () => {
    const { id, live, deliver } = await begin({ state: 'finished' });
    for (const step of ['record', 'upload', 'end'] as const) await live[step]();
    for (let i = 0; i < 5; i++) await deliver(3, false);
    const due = await dueWebhooks(edge.db, 100);
    expect(due).toHaveLength(5);
    // The job of each event and two sweeps, as after a restart.
    await Promise.all([...due, ...due, ...due].map((event) => applyWebhook(deps, event)));
    expect((await historyOf(id)).map(({ cause }) => cause)).toEqual(['published', 'claim', 'uploaded', 'webhook']);
    expect(await dueWebhooks(edge.db, 100)).toEqual([]);
  });

  it('that was given up with its cancelled render are settled at once, also when it is made anew', async () => {
    const { id, guid, live, deliver } = await begin({ state: 'finished' });
    for (const step of ['record', 'upload', 'end'] as const) await live[step]();
    await cancelByOperator(edge.db, [id], 'test');
    await deliver(3, true);
    await requeueByOperator(edge.db, { failed: [id], failedVideo: [], ready: [] }, 'test');
    await deliver(4, true);
    const stored = await edge.db.select().from(webhookEvents).where(eq(webhookEvents.videoGuid, guid));
    expect(stored.map(({ outcome, tries, appliedAt }) => [outcome, tries, appliedAt !== null])).toEqual([
      ['not-needed', 0, true],
      ['not-needed', 0, true],
    ]);
    expect(await findRender(edge.db, id)).toMatchObject({ status: 'pending', videoGuid: null });
  });
});
