import { eq } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { programs, sessionItems, sessions, webhookDeliveries, webhookEndpoints } from '../../../lib/db/schema/index.ts';
import { OUTBOUND_EVENTS } from '../../../lib/domain/outbound.ts';
import { createSigner } from '../../../lib/outbound/secret.ts';
import { useAppProcesses } from '../../support/app-process.ts';
import { anOrganisation } from '../../support/clinic.ts';
import { type Receiver, startReceiver, verified } from '../../support/receiver.ts';
import { guidOf } from '../../support/scripted-media.ts';
import { waitFor } from '../../support/wait.ts';
import { usePipeline } from './fixture.ts';

const KEY = 'a-signing-key-for-tests-that-is-long-enough';
const pipeline = usePipeline();
const { startApp } = useAppProcesses({ timeoutMs: 50_000 });

/** An endpoint for all events of the clinic that plays this render. */
async function listen(renderId: string, receiver: Receiver) {
  const { db } = pipeline.database;
  const [clinic] = await db
    .select({ orgId: programs.orgId, programId: programs.id })
    .from(sessionItems)
    .innerJoin(sessions, eq(sessions.id, sessionItems.sessionId))
    .innerJoin(programs, eq(programs.id, sessions.programId))
    .where(eq(sessionItems.renderId, renderId));
  const row = { orgId: clinic!.orgId, url: receiver.url, events: [...OUTBOUND_EVENTS], createdBy: 'manager-1' };
  const [endpoint] = await db.insert(webhookEndpoints).values(row).returning();
  return { secret: createSigner([KEY]).secretOf(endpoint!), programId: clinic!.programId };
}

it('a clinic’s server hears within about a second of each video and of the programme, once, from two workers side by side', async () => {
  const [connection, media] = [pipeline.connection(), await pipeline.media()];
  const receiver = await startReceiver();
  pipeline.own(receiver, receiver.close);
  const ids = await pipeline.publish(connection, 3);
  const { secret, programId } = await listen(ids[0]!, receiver);
  for (const renderId of ids) media.videos.set(guidOf({ renderId }), { state: 'finished', lengthSeconds: 10 });
  const env = { WEBHOOK_SIGNING_KEY: KEY, WEBHOOK_ALLOW_PRIVATE: 'true', TRANSCODE_DEADLINE_MS: '100' };
  const workers = [pipeline.work(connection, [media], env), pipeline.work(connection, [media], env)];

  await pipeline.reaches(ids, 'ready');
  const began = performance.now();
  await waitFor(() => receiver.received.length >= 4, { label: 'three videos and a programme to be told of' });
  // A poll and the gathering of the announcer; the rest is for a machine that has something else to do.
  expect(performance.now() - began).toBeLessThan(5_000);
  await waitFor(
    async () => {
      const rows = await pipeline.database.db.select().from(webhookDeliveries);
      return rows.length === 4 && rows.every(({ state }) => state === 'delivered');
    },
    { label: 'all to be delivered' },
  );
  const told = receiver.received.map((webhook) => verified(webhook, secret));
  expect(told.filter(({ type }) => type === 'exercise.render_ready').map(({ data }) => data.renderId)).toHaveLength(3);
  expect(new Set(told.map(({ data }) => data.renderId))).toEqual(new Set([...ids, undefined]));
  expect(told.filter(({ type }) => type === 'program.ready')).toMatchObject([{ data: { programId } }]);
  for (const worker of workers) expect(await worker.stop()).toEqual([]);
  expect(receiver.received).toHaveLength(4);
});

it('a worker process that is killed or told to stop in the middle of a delivery leaves it to the next one', async () => {
  const { db, url } = pipeline.database;
  const [connection, media] = [pipeline.connection(), await pipeline.media()];
  const receiver = await startReceiver();
  pipeline.own(receiver, receiver.close);
  receiver.answer = () => undefined;
  const start = () =>
    startApp('worker', {
      ...{ NODE_ENV: 'test', LOG_LEVEL: 'silent', DATABASE_URL: url, REDIS_URL: connection.redisUrl },
      ...{ REDIS_PREFIX: connection.prefix, MEDIA_URL: media.url, MEDIA_TOKEN: media.token, WEBHOOK_SIGNING_KEY: KEY },
      // The lease is three times as long.
      ...{ WEBHOOK_ALLOW_PRIVATE: 'true', DELIVERY_TIMEOUT_MS: '3000' },
    });
  const arrived = (count: number) =>
    waitFor(() => receiver.received.length === count, { label: `request ${count}`, timeoutMs: 30_000 });

  const row = { url: receiver.url, events: [...OUTBOUND_EVENTS], createdBy: 'manager-1' };
  const [endpoint] = await db
    .insert(webhookEndpoints)
    .values({ ...row, orgId: await anOrganisation(db) })
    .returning();
  const [delivery] = await db
    .insert(webhookDeliveries)
    .values({ endpointId: endpoint!.id, type: 'webhook.test', data: {} })
    .returning();

  const killed = await start();
  await arrived(1);
  killed.child.kill('SIGKILL');
  const stopped = await start();
  await arrived(2);
  stopped.child.kill('SIGTERM');
  expect((await stopped.child).exitCode).toBe(0);
  receiver.answer = (response) => response.writeHead(200).end();
  await start();
  await arrived(3);
  expect(new Set(receiver.received.map(({ id }) => id))).toEqual(new Set([delivery!.id]));
  await waitFor(
    async () =>
      (await db.select().from(webhookDeliveries).where(eq(webhookDeliveries.id, delivery!.id)))[0]?.state ===
      'delivered',
    { label: 'the delivery to be delivered' },
  );
});
