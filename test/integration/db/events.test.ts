import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import type { Lease } from '../../../lib/db/move.ts';
import { tellReady } from '../../../lib/db/notifications.ts';
import { cancelByOperator } from '../../../lib/db/operate.ts';
import { publishProgram, publishSession } from '../../../lib/db/publish.ts';
import {
  claimRender,
  deadLetter,
  expireLeases,
  markReady,
  markTranscodeFailed,
  markUploaded,
} from '../../../lib/db/renders.ts';
import { sessionItems, sessions, webhookDeliveries, webhookEndpoints } from '../../../lib/db/schema/index.ts';
import { createSession } from '../../../lib/db/session-library.ts';
import { deleteEndpoint } from '../../../lib/db/webhook-endpoints.ts';
import { OUTBOUND_EVENTS, type OutboundEvent } from '../../../lib/domain/outbound.ts';
import { doseSchema } from '../../../lib/domain/recipe.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();

const anEndpoint = async (orgId: string, change: Partial<typeof webhookEndpoints.$inferInsert> = {}) => {
  const row = { orgId, url: 'https://clinic.test/', events: [...OUTBOUND_EVENTS], createdBy: 'manager-1', ...change };
  const [endpoint] = await database.db.insert(webhookEndpoints).values(row).returning();
  return endpoint!.id;
};
const told = (endpointId: string) =>
  database.db
    .select({ type: webhookDeliveries.type, data: webhookDeliveries.data })
    .from(webhookDeliveries)
    .where(eq(webhookDeliveries.endpointId, endpointId))
    .orderBy(webhookDeliveries.createdAt);
const typesOf = async (endpointId: string) => (await told(endpointId)).map(({ type }) => type);

/** A published programme of these exercises, and the renders that it plays, in order. */
async function publish(orgId: string, exerciseIds: readonly string[]) {
  const { db } = database;
  const programId = await aProgram(db, orgId, [exerciseIds.map((exerciseId) => ({ exerciseId }))]);
  await publishProgram(db, { programId, orgId, by: 'specialist-1' });
  const items = await db
    .select({ renderId: sessionItems.renderId })
    .from(sessionItems)
    .innerJoin(sessions, eq(sessions.id, sessionItems.sessionId))
    .where(eq(sessions.programId, programId))
    .orderBy(sessionItems.position);
  return { programId, renderIds: items.map(({ renderId }) => renderId!) };
}
const exercisesOf = async (count: number, orgId: string | null = null) => {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await anExercise(database.db, { orgId })).id);
  return ids;
};
const claim = async (id: string, generation = 0): Promise<Lease> => {
  const token = randomUUID();
  await claimRender(database.db, { id, generation, token, by: 'worker-1', leaseMs: 60_000 });
  return { id, token };
};
const error = { code: 'ffmpeg_failed', message: 'The video could not be composed.', detail: 'a tail of stderr' };
const upload = async (id: string): Promise<string> => {
  const videoGuid = randomUUID();
  const made = {
    ...{ masterSha256: 'b'.repeat(64), videoGuid, collectionId: null, manifestUrl: 'https://cdn/manifest.json' },
    ...{ captionsUrl: null, posterUrl: 'https://cdn/poster.jpg', baselines: [], durationMs: 10_000, warnings: [] },
  };
  await markUploaded(database.db, await claim(id), made, 60_000);
  return videoGuid;
};
const finish = async (id: string) => markReady(database.db, { id, videoGuid: await upload(id), cause: 'webhook' });

describe('a render that has ended', () => {
  it('is told once to every endpoint of an organisation that plays it, each of its own programmes only', async () => {
    const { db } = database;
    const [orgA, orgB, orgC] = [await anOrganisation(db), await anOrganisation(db), await anOrganisation(db)];
    const endpoints = [await anEndpoint(orgA), await anEndpoint(orgA), await anEndpoint(orgB)];
    const stranger = await anEndpoint(orgC);
    const [exercise] = await exercisesOf(1);
    const first = await publish(orgA, [exercise!]);
    const again = await publish(orgA, [exercise!]);
    const theirs = await publish(orgB, [exercise!]);
    expect(new Set([...first.renderIds, ...again.renderIds, ...theirs.renderIds]).size).toBe(1);

    await finish(first.renderIds[0]!);
    const ours = [first.programId, again.programId].sort();
    const data = { renderId: first.renderIds[0], exerciseId: exercise, language: 'en' };
    for (const endpoint of endpoints.slice(0, 2)) {
      const [event, ...more] = await told(endpoint);
      expect(more).toEqual([]);
      expect(event).toEqual({ type: 'exercise.render_ready', data: { ...data, programIds: ours } });
    }
    expect(await told(endpoints[2]!)).toEqual([
      { type: 'exercise.render_ready', data: { ...data, programIds: [theirs.programId] } },
    ]);
    expect(await told(stranger)).toEqual([]);
  });

  it('is told once where webhook and backstop find it out at the same time', async () => {
    const orgId = await anOrganisation(database.db);
    const endpoint = await anEndpoint(orgId);
    const { renderIds } = await publish(orgId, await exercisesOf(1));
    const [id] = renderIds;
    const videoGuid = await upload(id!);
    const settle = (cause: string) => markReady(database.db, { id: id!, videoGuid, cause });
    const fail = () => markTranscodeFailed(database.db, { id: id!, videoGuid, cause: 'reconcile', error });
    const causes = ['webhook', 'backstop', 'webhook', 'reconcile'];
    await Promise.all([...causes.map(settle), fail()]);
    expect(await told(endpoint)).toHaveLength(1);
  });

  it('badly is told with a sentence for the clinic and nothing of what is for us', async () => {
    const orgId = await anOrganisation(database.db);
    const endpoint = await anEndpoint(orgId);
    const [exercise] = await exercisesOf(1, orgId);
    const { programId, renderIds } = await publish(orgId, [exercise!]);
    expect(await deadLetter(database.db, { id: renderIds[0]!, token: randomUUID() }, error)).toBeNull();
    expect(await told(endpoint)).toEqual([]);
    await deadLetter(database.db, await claim(renderIds[0]!), error);
    const failure = { code: error.code, sentence: error.message };
    expect(await told(endpoint)).toEqual([
      {
        type: 'exercise.render_failed',
        data: {
          ...{ renderId: renderIds[0], exerciseId: exercise, language: 'en', programIds: [programId], error: failure },
        },
      },
    ]);
  });

  it('because its worker died too often is told, too; because somebody cancelled it is not', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const endpoint = await anEndpoint(orgId);
    const { renderIds } = await publish(orgId, await exercisesOf(2));
    await claim(renderIds[0]!);
    await db.execute(sql`update exercise_renders set attempts = max_attempts, lease_expires_at = now() - interval '1 second'
                          where id = ${renderIds[0]}`);
    await expireLeases(db, 100);
    expect(await typesOf(endpoint)).toEqual(['exercise.render_failed']);
    await cancelByOperator(db, [renderIds[1]!], 'cancelled');
    expect(await typesOf(endpoint)).toEqual(['exercise.render_failed']);
  });

  it('is told to nobody who has not chosen it, who is disabled, or whose programme is archived', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const chosen: OutboundEvent[] = ['exercise.render_failed', 'program.ready'];
    const deaf = [await anEndpoint(orgId, { events: chosen }), await anEndpoint(orgId, { enabled: false })];
    const { renderIds } = await publish(orgId, await exercisesOf(1));
    const archived = await anOrganisation(db);
    deaf.push(await anEndpoint(archived));
    const { programId } = await publish(archived, await exercisesOf(1));
    await db.execute(sql`update sessions set status = 'archived' where program_id = ${programId}`);
    await finish(renderIds[0]!);
    for (const endpoint of deaf) expect(await told(endpoint)).toEqual([]);
  });

  it('is told to the clinic whose session stands alone', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const endpoint = await anEndpoint(orgId);
    const [exerciseId] = await exercisesOf(1);
    const sessionId = await db.transaction(async (tx) =>
      createSession(tx, {
        ...{ orgId, title: 'Core', language: 'en', createdBy: 'specialist-1' },
        items: [{ exerciseId: exerciseId!, dose: doseSchema.parse({}) }],
      }),
    );
    const { queued } = await publishSession(db, { sessionId, orgId, by: 'specialist-1' });
    await finish(queued[0]!.id);
    expect(await told(endpoint)).toMatchObject([{ type: 'exercise.render_ready', data: { programIds: [] } }]);
  });

  it('ends whatever becomes of an endpoint meanwhile', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const endpoints = await Promise.all(Array.from({ length: 8 }, () => anEndpoint(orgId)));
    const { renderIds } = await publish(orgId, await exercisesOf(8));
    const guids: string[] = [];
    for (const id of renderIds) guids.push(await upload(id));
    const ended = await Promise.all([
      ...renderIds.map((id, n) => markReady(db, { id, videoGuid: guids[n]!, cause: 'webhook' })),
      ...endpoints.map((id) => deleteEndpoint(db, { id, orgId })),
    ]);
    expect(ended.slice(0, 8).every((render) => render !== null && render !== undefined)).toBe(true);
  });

  it('costs one statement, whoever listens', async () => {
    const orgId = await anOrganisation(database.db);
    const { renderIds } = await publish(orgId, await exercisesOf(2));
    const guids = [await upload(renderIds[0]!), await upload(renderIds[1]!)];
    const end = (n: number) =>
      database.countStatements(() =>
        markReady(database.db, { id: renderIds[n]!, videoGuid: guids[n]!, cause: 'webhook' }),
      );
    const unheard = await end(0);
    for (let i = 0; i < 5; i++) await anEndpoint(orgId);
    expect([unheard, await end(1)]).toEqual([1, 1]);
  });
});

describe('a programme that has become ready', () => {
  it('is told once, when the last of it is ready, however many look at once and however often', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const endpoint = await anEndpoint(orgId, { events: ['program.ready'] });
    const { programId, renderIds } = await publish(orgId, await exercisesOf(2));
    for (const id of renderIds) {
      await tellReady(db);
      expect(await told(endpoint)).toEqual([]);
      await finish(id);
    }
    await Promise.all([tellReady(db, [programId]), tellReady(db), tellReady(db, [programId]), tellReady(db)]);
    expect(await told(endpoint)).toMatchObject([{ type: 'program.ready', data: { programId } }]);
    await db.execute(sql`update exercise_renders set status = 'failed', error_code = 'x' where id = ${renderIds[0]}`);
    await tellReady(db);
    await db.execute(sql`update exercise_renders set status = 'ready' where id = ${renderIds[0]}`);
    await tellReady(db);
    expect(await told(endpoint)).toHaveLength(1);
  });

  it('is told also where all of its videos were there before', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const exercises = await exercisesOf(1);
    const { renderIds } = await publish(orgId, exercises);
    await finish(renderIds[0]!);
    const endpoint = await anEndpoint(orgId);
    const { programId } = await publish(orgId, exercises);
    await tellReady(db, [programId]);
    expect(await told(endpoint)).toMatchObject([{ type: 'program.ready', data: { programId } }]);
  });

  it('before anybody listened is no news to those who come later', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    const { programId, renderIds } = await publish(orgId, await exercisesOf(1));
    await finish(renderIds[0]!);
    await tellReady(db, [programId]);
    const endpoint = await anEndpoint(orgId);
    await tellReady(db);
    expect(await told(endpoint)).toEqual([]);
  });

  it('is told in one statement', async () => {
    const { db } = database;
    const orgId = await anOrganisation(db);
    await anEndpoint(orgId);
    const { renderIds } = await publish(orgId, await exercisesOf(1));
    await finish(renderIds[0]!);
    expect(await database.countStatements(() => tellReady(db))).toBe(1);
  });
});
