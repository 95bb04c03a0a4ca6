import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, ApiProblem, bodyOf, createApi } from '../../../lib/client/client.ts';
import { organisations } from '../../../lib/db/schema/index.ts';
import { people, startEdge, type TestEdge } from './fixture.ts';

const who = people();
let edge: TestEdge;
let manager: Api;
let specialist: Api;

beforeAll(async () => {
  edge = await startEdge();
  await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  manager = await edge.api(who.manager);
  specialist = await edge.api(who.specialist);
});
afterAll(() => edge.close());

const refusalOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: unknown) => error as ApiProblem,
  );

describe('the client', () => {
  it('makes, reads and lists what the API has, a page after the other', async () => {
    const ids: string[] = [];
    for (const en of ['Squat', 'Lunge', 'Plank']) {
      ids.unshift((await bodyOf(manager.POST('/v1/exercises', { body: { names: { en } } }))).id);
    }
    const first = await bodyOf(manager.GET('/v1/exercises', { params: { query: { limit: 2 } } }));
    expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const query = { limit: 2, cursor: first.nextCursor ?? '' };
    const second = await bodyOf(manager.GET('/v1/exercises', { params: { query } }));
    expect(second).toMatchObject({ items: [{ id: ids[2], names: { en: 'Squat' } }], nextCursor: null });
  });

  it('publishes, assigns and takes back, where answers have no body, too', async () => {
    const body = { names: { en: 'Squat' } };
    const exercise = await bodyOf(manager.POST('/v1/exercises', { body }));
    const sessions = [{ items: [{ exerciseId: exercise.id, dose: { reps: 8 } }] }];
    const program = await bodyOf(
      specialist.POST('/v1/programs', { body: { title: 'Knee', language: 'en', sessions } }),
    );
    expect(program.sessions[0]?.items[0]?.dose).toMatchObject({ sets: 3, reps: 8 });
    const params = { path: { id: program.id } };
    const preview = await bodyOf(specialist.GET('/v1/programs/{id}/publish-preview', { params }));
    expect(preview.problems).toMatchObject([{ code: 'source_missing' }]);
    const patientId = who.patient.sub;
    await bodyOf(specialist.POST('/v1/programs/{id}/assignments', { params, body: { patientId } }));
    const path = { ...params.path, patientId };
    const taken = specialist.DELETE('/v1/programs/{id}/assignments/{patientId}', { params: { path } });
    expect(await bodyOf(taken)).toBeUndefined();
  });

  it('throws what was refused, with its code, in the API’s own words', async () => {
    const params = { path: { id: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10' } };
    const absent = await refusalOf(bodyOf(specialist.GET('/v1/programs/{id}', { params })));
    expect(absent).toBeInstanceOf(ApiProblem);
    expect(absent).toMatchObject({ status: 404, code: 'not_found', message: 'There is no such thing.' });
    const untitled = bodyOf(specialist.POST('/v1/programs', { body: { title: ' ', language: 'en' } }));
    expect(await refusalOf(untitled)).toMatchObject({ code: 'invalid_request', message: 'expects some text' });
  });

  it('throws where something else than the edge answers', async () => {
    const proxy = createApi('http://edge.test', 'token', {
      fetch: () => new Response('<h1>Bad Gateway</h1>', { status: 502, headers: { 'content-type': 'text/html' } }),
    });
    const refusal = await refusalOf(bodyOf(proxy.GET('/v1/programs')));
    expect(refusal).toMatchObject({ status: 502, code: undefined, message: 'the API answered 502' });
  });

  it('sends a file as it is, and gives up on an edge that says nothing or when it is told to', async () => {
    const server = createServer((request, response) => {
      if (request.method !== 'PUT') return;
      response.setHeader('Content-Type', 'application/json');
      let bytes = 0;
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      request.on('end', () => response.end(JSON.stringify({ bytes, sha256: request.headers['content-type'] })));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const params = { path: { id: 'x' } };
      const sent = createApi(url, 'token').PUT('/v1/exercises/{id}/source', { params, body: new Blob(['abc']) });
      expect(await bodyOf(sent)).toEqual({ bytes: 3, sha256: 'application/octet-stream' });
      const silent = createApi(url, 'token', { timeoutMs: 50 }).GET('/v1/programs');
      expect(await refusalOf(silent)).toMatchObject({ name: 'TimeoutError' });
      const stopped = createApi(url, 'token', { signal: AbortSignal.abort() }).GET('/v1/programs');
      expect(await refusalOf(stopped)).toMatchObject({ name: 'AbortError' });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
