import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSim, SIM_DEFAULTS } from '../../apps/bunny-sim/sim.ts';
import { createMedia } from '../../apps/media/media.ts';
import { bodyOf } from '../../lib/client/client.ts';
import { loadMediaConfig } from '../../lib/config/media.ts';
import {
  assignments,
  exerciseRenders,
  notifications,
  organisations,
  webhookDeliveries,
  webhookEndpoints,
} from '../../lib/db/schema/index.ts';
import { RENDER_STATUSES } from '../../lib/domain/render-states.ts';
import { aPublishedProgram, moveTo, people, startEdge, type TestEdge, tokenFor } from '../integration/edge/fixture.ts';
import { anExercise, aProgram } from '../support/clinic.ts';
import { makeClip, makeTone, testFfmpeg } from '../support/ffmpeg.ts';
import { silentLog } from '../support/log.ts';
import { makeTempDir } from '../support/temp-dir.ts';
import type { CallerName, FILES } from './requests.ts';

const MEDIA_TOKEN = 'a-token-for-media';
const WEBHOOK_TOKEN = 'a-token-for-the-webhook';
const MAX_UPLOAD_BYTES = 100_000;

export interface Scene {
  edge: TestEdge;
  /** Ids of what is there, by kind; requests that make something add to them. */
  known: Record<string, string[]>;
  files: Record<(typeof FILES)[number], Uint8Array<ArrayBuffer>>;
  authorization(caller: CallerName): Promise<string | null>;
  close(): Promise<void>;
}

/** Two clinics with something in every state, and a real media service for uploads. */
export async function setScene(): Promise<Scene> {
  const dir = await makeTempDir();
  const sim = await createSim({ dataDir: join(dir, 'sim'), transcode: 'fast' }, { log: silentLog });
  const config = loadMediaConfig({
    ...{ LOG_LEVEL: 'silent', MEDIA_TOKEN, MEDIA_DRAIN_MS: '0' },
    ...{ MEDIA_CACHE_DIR: join(dir, 'cache'), MEDIA_WORK_DIR: join(dir, 'work') },
    ...{ BUNNY_STREAM_URL: sim.streamUrl, BUNNY_STORAGE_URL: sim.storageUrl, BUNNY_CDN_URL: sim.cdnUrl },
    ...{ BUNNY_LIBRARY_ID: String(SIM_DEFAULTS.libraryId), BUNNY_STREAM_KEY: SIM_DEFAULTS.streamKey },
    ...{ BUNNY_STORAGE_ZONE: SIM_DEFAULTS.storageZone, BUNNY_STORAGE_KEY: SIM_DEFAULTS.storageKey },
  });
  const media = await createMedia(config, { toolchain: testFfmpeg(), log: silentLog });
  const edge = await startEdge({
    WEBHOOK_SIGNING_KEY: 'a-signing-key-of-the-fuzz-0123456789',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    ...{ MEDIA_URL: media.url, MEDIA_TOKEN, MAX_UPLOAD_BYTES: String(MAX_UPLOAD_BYTES) },
    ...{ RATE_PER_TOKEN: '10000000', BUNNY_WEBHOOK_TOKEN: WEBHOOK_TOKEN },
  });
  const who = people();
  const known = await seed(edge, who);
  const [video, tone] = [await readFile(await makeClip(dir, { seconds: 1 })), await readFile(await makeTone(dir))];
  return {
    edge,
    known: { ...known, webhookToken: [WEBHOOK_TOKEN] },
    files: {
      nothing: new Uint8Array(),
      garbage: new Uint8Array(5_000).fill(7),
      'half a video': new Uint8Array(video.subarray(0, 3_000)),
      video: new Uint8Array(video),
      sound: new Uint8Array(tone),
      'too much': new Uint8Array(MAX_UPLOAD_BYTES + 1),
    },
    authorization: async (caller) => {
      if (caller === 'nobody') return null;
      return caller === 'liar' ? 'Bearer nonsense' : `Bearer ${await tokenFor(who[caller])}`;
    },
    close: async () => {
      await edge.close();
      await media.close();
      await sim.close();
    },
  };
}

async function seed(edge: TestEdge, who: ReturnType<typeof people>): Promise<Record<string, string[]>> {
  const { db } = edge;
  const [org, otherOrg] = [who.manager.org, who.otherManager.org];
  await db.insert(organisations).values([
    { id: org, name: 'A' },
    { id: otherOrg, name: 'B' },
  ]);
  const platform = await anExercise(db);
  const own = await anExercise(db, { orgId: org });
  const filmless = await anExercise(db, { orgId: org, durationMs: null });
  const strange = await anExercise(db, { orgId: otherOrg });
  const published = await Promise.all([
    aPublishedProgram(db, org, Array(RENDER_STATUSES.length).fill(own.id)),
    aPublishedProgram(db, org, [platform.id]),
    aPublishedProgram(db, otherOrg, [strange.id]),
  ]);
  const [mixed, playing] = published;
  for (const [at, status] of RENDER_STATUSES.entries()) await moveTo(db, mixed?.renderIds[at] ?? '', status);
  await moveTo(db, playing?.renderIds[0] ?? '', 'ready');
  const unpublished = [
    await aProgram(db, org, [[{ exerciseId: own.id }, { exerciseId: platform.id }]]),
    await aProgram(db, org, [[{ exerciseId: filmless.id }]]),
    await aProgram(db, org, []),
  ];
  for (const { programId } of published) {
    await db.insert(assignments).values({ programId, patientId: who.patient.sub, assignedBy: 'specialist-a' });
  }
  const told = await db
    .insert(notifications)
    .values([who.manager, who.patient].map(({ sub, org }) => ({ recipient: sub, orgId: org, kind: 'x', payload: {} })))
    .returning({ id: notifications.id });

  const endpoints = await db
    .insert(webhookEndpoints)
    .values(
      [org, otherOrg].map((orgId) => ({
        ...{ orgId, url: 'https://clinic.example.com/', events: ['program.ready' as const], createdBy: 'manager-a' },
      })),
    )
    .returning({ id: webhookEndpoints.id });
  const deliveries = await db
    .insert(webhookDeliveries)
    .values(endpoints.map(({ id }) => ({ endpointId: id, type: 'program.ready' as const, data: {} })))
    .returning({ id: webhookDeliveries.id });

  const api = await edge.api(who.specialist);
  const of = (id: string) => ({ params: { path: { id } } });
  const aSession = async (title: string) => {
    const body = { title, language: 'en', items: [{ exerciseId: platform.id }] };
    return (await bodyOf(api.POST('/v1/sessions', { body }))).id;
  };
  const library = [await aSession('Core'), await aSession('Hip'), await aSession('Neck')] as const;
  await bodyOf(api.POST('/v1/sessions/{id}/publish', of(library[0])));
  await bodyOf(api.POST('/v1/sessions/{id}/archive', of(library[1])));
  const archived = await aProgram(db, org, [[{ exerciseId: own.id }]]);
  await bodyOf(api.POST('/v1/programs/{id}/archive', of(archived)));
  const renders = await db.select({ id: exerciseRenders.id }).from(exerciseRenders);
  return {
    org: [org, otherOrg],
    exercise: [own, platform, filmless, strange].map(({ id }) => id),
    program: [...published.map(({ programId }) => programId), ...unpublished, archived],
    session: [...published.map(({ sessionId }) => sessionId), ...library],
    // Mostly the published one, or no programme would ever take a copy.
    librarySession: [library[0], library[0], library[2]],
    render: renders.map(({ id }) => id),
    notification: told.map(({ id }) => id),
    endpoint: endpoints.map(({ id }) => id),
    delivery: deliveries.map(({ id }) => id),
    patient: [who.patient.sub, who.otherPatient.sub, 'somebody'],
    // Of a name that no resolver has to be asked for.
    hook: ['https://127.0.0.1:9/hooks'],
  };
}
