import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bodyOf } from '../../../lib/client/client.ts';
import { assignments, notifications, organisations, webhookDeliveries } from '../../../lib/db/schema/index.ts';
import { anExercise } from '../../support/clinic.ts';
import { aPublishedProgram, type Caller, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
const roles = ['superadmin', 'manager', 'specialist', 'patient', 'ops'] as const;
type RoleName = (typeof roles)[number];

let edge: TestEdge;
let ids: Record<string, string>;

beforeAll(async () => {
  edge = await startEdge({
    WEBHOOK_SIGNING_KEY: 'a-signing-key-for-tests-that-is-long-enough',
    WEBHOOK_ALLOW_PRIVATE: 'true',
  });
  await edge.db.insert(organisations).values([
    { id: who.manager.org, name: 'A' },
    { id: who.otherManager.org, name: 'B' },
  ]);
  const exercise = await anExercise(edge.db, { orgId: who.manager.org });
  const platform = await anExercise(edge.db);
  const published = await aPublishedProgram(edge.db, who.manager.org, [exercise.id]);
  const { programId, sessionId } = published;
  await edge.db.insert(assignments).values({ programId, patientId: who.patient.sub, assignedBy: 'specialist-a' });
  const alone = async () => {
    const body = { title: 'Core', language: 'en', items: [{ exerciseId: exercise.id }] };
    return (await bodyOf((await edge.api(who.specialist)).POST('/v1/sessions', { body }))).id;
  };
  ids = { exercise: exercise.id, platform: platform.id, program: programId, session: sessionId };
  const [notification] = await edge.db
    .insert(notifications)
    .values({ recipient: who.manager.sub, orgId: who.manager.org, kind: 'x', payload: {} })
    .returning({ id: notifications.id });
  ids = { ...ids, notification: notification?.id ?? '' };
  const endpoint = async () => {
    const json = { url: 'http://127.0.0.1:9/', events: ['program.ready'] };
    const made = await edge.call('POST', '/v1/webhook-endpoints', { as: who.manager, json });
    return ((await made.json()) as { id: string }).id;
  };
  ids = { ...ids, endpoint: await endpoint(), unwanted: await endpoint() };
  const [delivery] = await edge.db
    .insert(webhookDeliveries)
    .values({ endpointId: ids.endpoint ?? '', type: 'webhook.test', data: {} })
    .returning({ id: webhookDeliveries.id });
  ids = { ...ids, delivery: delivery?.id ?? '' };
  ids = { ...ids, render: published.renderIds[0] ?? '', alone: await alone(), other: await alone() };
});
afterAll(() => edge.close());

const clinic: RoleName[] = ['superadmin', 'manager', 'specialist'];
const content: RoleName[] = ['superadmin', 'manager'];
const names = { en: 'Lunge' };

/** Every route below /v1, who may use it, and a request that fits it. */
const ROUTES: [method: string, path: string, allowed: RoleName[], json?: object][] = [
  ['POST', '/v1/exercises', content, { names }],
  ['GET', '/v1/exercises', clinic],
  ['GET', '/v1/exercises/{exercise}', clinic],
  ['PATCH', '/v1/exercises/{exercise}', content, { names }],
  ['PUT', '/v1/exercises/{exercise}/source', content],
  ['PUT', '/v1/exercises/{exercise}/cues/en/start', content],
  ['POST', '/v1/programs', clinic, { title: 'Knee', language: 'en' }],
  ['GET', '/v1/programs', clinic],
  ['GET', '/v1/programs/{program}', clinic],
  ['PATCH', '/v1/programs/{program}', clinic, { title: 'Knee' }],
  ['POST', '/v1/programs/{program}/publish', clinic],
  ['GET', '/v1/programs/{program}/publish-preview', clinic],
  ['GET', '/v1/programs/{program}/renders', clinic],
  ['POST', '/v1/programs/{program}/copy', clinic, {}],
  ['POST', '/v1/programs/{program}/sessions', clinic, { sessionId: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10' }],
  ['POST', '/v1/sessions', clinic, { title: 'Core', language: 'en' }],
  ['GET', '/v1/sessions', clinic],
  ['GET', '/v1/sessions/{alone}', clinic],
  ['PATCH', '/v1/sessions/{alone}', clinic, { title: 'Core' }],
  ['POST', '/v1/sessions/{alone}/publish', clinic],
  ['POST', '/v1/sessions/{other}/archive', clinic],
  ['POST', '/v1/renders/{render}/retry', clinic, {}],
  ['POST', '/v1/renders/{render}/cancel', clinic],
  ['POST', '/v1/programs/{program}/assignments', clinic, { patientId: 'patient-a' }],
  ['DELETE', '/v1/programs/{program}/assignments/patient-z', clinic],
  ['GET', '/v1/notifications', [...roles]],
  ['POST', '/v1/notifications/{notification}/read', [...roles]],
  ['POST', '/v1/webhook-endpoints', content, { url: 'http://127.0.0.1:9/', events: ['program.ready'] }],
  ['GET', '/v1/webhook-endpoints', content],
  ['GET', '/v1/webhook-endpoints/{endpoint}', content],
  ['PATCH', '/v1/webhook-endpoints/{endpoint}', content, { description: 'Appointments' }],
  ['POST', '/v1/webhook-endpoints/{endpoint}/rotate-secret', content],
  ['POST', '/v1/webhook-endpoints/{endpoint}/test', content],
  ['GET', '/v1/webhook-endpoints/{endpoint}/deliveries', content],
  ['POST', '/v1/webhook-endpoints/{endpoint}/deliveries/{delivery}/replay', content],
  ['DELETE', '/v1/webhook-endpoints/{unwanted}', content],
  ['GET', '/v1/me/programs', ['patient']],
  ['GET', '/v1/programs/{program}/readiness', [...clinic, 'patient']],
  ['GET', '/v1/sessions/{session}/play', [...clinic, 'patient']],
  ['POST', '/v1/sessions/{session}/runs', ['patient']],
  // The last: it hides the programme from its patient.
  ['POST', '/v1/programs/{program}/archive', clinic],
];

const fill = (path: string) => path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? '');
const call = (method: string, path: string, as: Caller | undefined, json?: object) =>
  edge.call(method, fill(path), { as, ...(json && { json }), ...(method === 'PUT' && { body: 'bytes' }) });

describe('every route below /v1', () => {
  it('is in this table', async () => {
    const document = (await (await edge.call('GET', '/openapi.json')).json()) as { paths: Record<string, object> };
    const documented = Object.entries(document.paths)
      .filter(([path]) => path.startsWith('/v1/'))
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
      .map((route) => route.replace(/\{\w+\}/g, '{}'));
    const listed = ROUTES.map(([method, path]) =>
      `${method} ${path}`
        .replace(/\{\w+\}/g, '{}')
        .replace('/cues/en/start', '/cues/{}/{}')
        .replace('patient-z', '{}'),
    );
    expect(listed.sort()).toEqual(documented.sort());
  });

  it.each(ROUTES)('%s %s wants a valid token', async (method, path, _, json) => {
    for (const headers of [{}, { authorization: 'Bearer nonsense' }, { authorization: 'Basic b3BzOnBhc3N3b3Jk' }]) {
      const response = await edge.call(method, fill(path), { headers, ...(json && { json }) });
      expect(await problemOf(response)).toMatchObject({ httpStatus: 401, code: 'unauthorized' });
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  it.each(ROUTES)('%s %s is open to its roles and to no other', async (method, path, allowed, json) => {
    for (const role of roles) {
      const response = await call(method, path, who[role], json);
      const refused = response.status === 403;
      expect({ role, refused, status: response.status }).toMatchObject({ role, refused: !allowed.includes(role) });
      if (refused) expect((await problemOf(response)).code).toBe('forbidden');
      else expect([401, 500]).not.toContain(response.status);
    }
  });

  const ofOneThing = ROUTES.filter(([, path]) => path.includes('{'));
  it.each(ofOneThing)('%s %s answers 404 to another organisation', async (method, path, allowed, json) => {
    for (const other of [who.otherManager, who.otherPatient]) {
      if (!allowed.includes(other.role)) continue;
      expect((await problemOf(await call(method, path, other, json))).httpStatus).toBe(404);
    }
  });

  it.each(ofOneThing)(
    '%s %s answers 404 for what is not there and 422 for what is no id',
    async (method, path, allowed, json) => {
      const as = who[allowed[0] ?? 'superadmin'];
      const absent = path.replace(/\{\w+\}/, '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10');
      expect((await problemOf(await call(method, absent, as, json))).httpStatus).toBe(404);
      const odd = await problemOf(await call(method, path.replace(/\{\w+\}/, 'not-an-id'), as, json));
      expect(odd).toMatchObject({ httpStatus: 422, code: 'invalid_request', errors: [{ path: 'id' }] });
    },
  );
});

describe('tiers', () => {
  it('let a manager read the platform’s exercises but not change them', async () => {
    expect((await call('GET', '/v1/exercises/{platform}', who.manager)).status).toBe(200);
    for (const [method, path, json] of [
      ['PATCH', '/v1/exercises/{platform}', { names }],
      ['PUT', '/v1/exercises/{platform}/source'],
      ['PUT', '/v1/exercises/{platform}/cues/en/start'],
    ] as const) {
      expect((await problemOf(await call(method, path, who.manager, json))).code).toBe('forbidden');
    }
  });

  it('let a superadmin change either', async () => {
    for (const path of ['/v1/exercises/{platform}', '/v1/exercises/{exercise}']) {
      expect((await call('PATCH', path, who.superadmin, { names })).status).toBe(200);
    }
  });
});

describe('a patient', () => {
  it('of the same clinic sees only what is assigned to them', async () => {
    const stranger: Caller = { ...who.patient, sub: 'patient-y' };
    for (const [method, path] of [
      ['GET', '/v1/programs/{program}/readiness'],
      ['GET', '/v1/sessions/{session}/play'],
      ['POST', '/v1/sessions/{session}/runs'],
    ] as const) {
      expect((await problemOf(await call(method, path, stranger))).httpStatus).toBe(404);
    }
    expect(await (await call('GET', '/v1/me/programs', stranger)).json()).toMatchObject({ items: [] });
  });

  it('of another clinic with the same name sees nothing of it', async () => {
    const namesake: Caller = { ...who.otherPatient, sub: who.patient.sub };
    expect((await call('GET', '/v1/programs/{program}/readiness', namesake)).status).toBe(404);
    expect((await call('GET', '/v1/sessions/{session}/play', namesake)).status).toBe(404);
    expect(await (await call('GET', '/v1/me/programs', namesake)).json()).toMatchObject({ items: [] });
  });
});
