import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assignments, organisations, renderEvents } from '../../../lib/db/schema/index.ts';
import { stepOf } from '../../../lib/domain/eta.ts';
import { anExercise } from '../../support/clinic.ts';
import { startPrivateRedis } from '../../support/redis.ts';
import { aPublishedProgram, DEAD, moveTo, people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
const as = who.patient;
let edge: TestEdge;
let other: TestEdge;
let exercise: string;

beforeAll(async () => {
  edge = await startEdge();
  // Another process of the same installation.
  const { DATABASE_URL, REDIS_URL, REDIS_PREFIX } = edge.deps.config;
  other = await startEdge({ DATABASE_URL, REDIS_URL, REDIS_PREFIX });
  await edge.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
  exercise = (await anExercise(edge.db, { orgId: who.manager.org })).id;
});
afterAll(async () => {
  await other.close();
  await edge.close();
});

async function aWatched(target = edge, of = exercise) {
  const program = await aPublishedProgram(target.db, who.manager.org, [of]);
  await target.db.insert(assignments).values({ programId: program.programId, patientId: as.sub, assignedBy: 'x' });
  const [renderId = ''] = program.renderIds;
  await moveTo(target.db, renderId, 'transcoding');
  await target.deps.statuses.changed({ renders: [renderId] });
  return { ...program, renderId, path: `/v1/programs/${program.programId}/readiness` };
}
const finish = async (renderId: string, by = edge) => {
  await moveTo(by.db, renderId, 'ready');
  await by.deps.statuses.changed({ renders: [renderId] });
};
const get = (path: string, target = edge, headers = {}) => target.call('GET', path, { as, headers });

describe('a wait', () => {
  it('is answered when another process has made it ready, by any process', async () => {
    const { renderId, path } = await aWatched();
    const waiting = [edge, other].flatMap((each) => Array.from({ length: 10 }, () => get(`${path}?wait=20`, each)));
    await delay(100);
    await finish(renderId);
    const rung = performance.now();
    for (const answer of await Promise.all(waiting)) expect(await answer.json()).toMatchObject({ status: 'ready' });
    expect(performance.now() - rung).toBeLessThan(1_000);
  });

  it('for another state than the known one is answered when it changes, else 304 in time', async () => {
    const { renderId, path } = await aWatched();
    const tag = (await get(path)).headers.get('etag') ?? '';
    const same = await get(`${path}?wait=1`, edge, { 'if-none-match': tag });
    expect([same.status, same.headers.get('etag')]).toEqual([304, tag]);
    const news = get(`${path}?wait=20`, other, { 'if-none-match': tag });
    await finish(renderId);
    expect(await (await news).json()).toMatchObject({ status: 'ready', eta: null });
    expect((await get(`${path}?wait=20`)).status).toBe(200);
  });

  it('ends with 404 for a patient from whom the programme is taken', async () => {
    const { programId, path } = await aWatched();
    const waiting = get(`${path}?wait=20`, other);
    await delay(50);
    await edge.call('DELETE', `/v1/programs/${programId}/assignments/${as.sub}`, { as: who.specialist });
    expect((await problemOf(await waiting)).httpStatus).toBe(404);
  });

  it('is refused beyond twenty at once of one person, and frees its place', async () => {
    const { renderId, path } = await aWatched();
    const waiting = Array.from({ length: 20 }, () => get(`${path}?wait=20`));
    await delay(50);
    const problem = await problemOf(await get(`${path}?wait=20`));
    expect(problem).toMatchObject({ httpStatus: 429, code: 'too_many_requests' });
    expect((await get(path)).status).toBe(200);
    await finish(renderId);
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200);
    expect((await get(`${path}?wait=1`)).status).toBe(200);
  });

  it('of one person is not counted to another of the same name in another clinic', async () => {
    const namesake = { ...who.otherPatient, sub: as.sub };
    await edge.db.insert(organisations).values({ id: namesake.org, name: 'B' });
    const theirs = (await anExercise(edge.db, { orgId: namesake.org })).id;
    const { programId, renderIds } = await aPublishedProgram(edge.db, namesake.org, [theirs]);
    await edge.db.insert(assignments).values({ programId, patientId: namesake.sub, assignedBy: 'x' });
    const [renderId = ''] = renderIds;
    await moveTo(edge.db, renderId, 'transcoding');
    await edge.deps.statuses.changed({ renders: [renderId] });
    const { path } = await aWatched();
    const stream = { accept: 'text/event-stream' };
    const streams = await Promise.all(Array.from({ length: 20 }, () => get(path, edge, stream)));
    try {
      expect((await get(`${path}?wait=1`)).status).toBe(429);
      const answer = await edge.call('GET', `/v1/programs/${programId}/readiness?wait=1`, { as: namesake });
      expect(answer.status).toBe(200);
    } finally {
      await Promise.all(streams.map((each) => each.body?.cancel()));
    }
  });

  it.each(['-1', '31', 'x', '1.5'])('of %s seconds is refused', async (wait) => {
    const { path } = await aWatched();
    expect(await problemOf(await get(`${path}?wait=${wait}`))).toMatchObject({ httpStatus: 422 });
  });

  it.each([['away', `redis://${DEAD}`]])('is right while Redis is %s', async (_, REDIS_URL) => {
    const alone = await startEdge({ REDIS_URL });
    try {
      await alone.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
      const own = (await anExercise(alone.db, { orgId: who.manager.org })).id;
      const { renderId, path } = await aWatched(alone, own);
      const waiting = get(`${path}?wait=20`, alone);
      // As a worker does it, whom nobody here hears.
      await moveTo(alone.db, renderId, 'ready');
      const since = performance.now();
      expect(await (await waiting).json()).toMatchObject({ status: 'ready' });
      expect(performance.now() - since).toBeLessThan(2_000);
    } finally {
      await alone.close();
    }
  });

  it('goes on being right when Redis is killed under it', async () => {
    const redis = await startPrivateRedis();
    const alone = await startEdge({ REDIS_URL: redis.url });
    try {
      await alone.db.insert(organisations).values({ id: who.manager.org, name: 'A' });
      const own = (await anExercise(alone.db, { orgId: who.manager.org })).id;
      const { renderId, path } = await aWatched(alone, own);
      expect(await (await get(path, alone)).json()).toMatchObject({ status: 'preparing' });
      await redis.stop();
      await finish(renderId, alone);
      expect(await (await get(path, alone)).json()).toMatchObject({ status: 'ready' });
    } finally {
      await alone.close();
    }
  });
});

describe('a stream of events', () => {
  async function* eventsOf(answer: Response) {
    let text = '';
    for await (const chunk of (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const fields = new Map(
          text
            .slice(0, end)
            .split('\n')
            .map((line) => line.split(/: ?(.*)/s, 2) as [string, string]),
        );
        text = text.slice(end + 2);
        if (fields.get('event') === 'readiness') {
          yield { id: fields.get('id'), data: JSON.parse(fields.get('data') ?? '') as { status: string } };
        }
      }
    }
  }

  it('begins with the present state and tells each change, from whatever process', async () => {
    const { renderId, path } = await aWatched();
    const answer = await get(path, other, { accept: 'text/event-stream' });
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    const events = eventsOf(answer);
    const first = (await events.next()).value;
    expect(first?.data).toMatchObject({ status: 'preparing' });
    expect(first?.id).toBe((await get(path)).headers.get('etag'));
    await finish(renderId);
    expect((await events.next()).value?.data).toMatchObject({ status: 'ready' });
    await events.return(undefined);
  });

  it('is a problem where there is nothing to see', async () => {
    const path = '/v1/programs/0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10/readiness';
    expect((await problemOf(await get(path, edge, { accept: 'text/event-stream' }))).httpStatus).toBe(404);
  });

  it('ends when the process is told to stop, and when the patient loses the programme', async () => {
    const stopping = new AbortController();
    const { DATABASE_URL, REDIS_URL, REDIS_PREFIX } = edge.deps.config;
    const third = await startEdge({ DATABASE_URL, REDIS_URL, REDIS_PREFIX }, { stopping: stopping.signal });
    try {
      const { programId, path } = await aWatched();
      const headers = { accept: 'text/event-stream' };
      const [stopped, lost] = await Promise.all([get(path, third, headers), get(path, edge, headers)]);
      stopping.abort();
      await stopped.text();
      await edge.call('DELETE', `/v1/programs/${programId}/assignments/${as.sub}`, { as: who.specialist });
      await lost.text();
    } finally {
      await third.close();
    }
  });
});

describe('the time that is foretold', () => {
  it('comes from what bakes and transcodes took, and from who is before', async () => {
    const { renderIds, programId } = await aPublishedProgram(edge.db, who.manager.org, [exercise, exercise]);
    const [done = '', mine = ''] = renderIds;
    const begun = Date.now() - 600_000;
    const at = (seconds: number) => new Date(begun + seconds * 1_000);
    const event = (fromStatus: string | null, toStatus: string, seconds: number) => ({
      ...{ renderId: done, generation: 0, attempt: 1, cause: 'x', at: at(seconds) },
      ...{ fromStatus: fromStatus as 'pending' | null, toStatus: toStatus as 'pending' },
    });
    await edge.db
      .insert(renderEvents)
      .values([
        event('pending', 'rendering', 0),
        event('rendering', 'transcoding', 100),
        event('transcoding', 'ready', 300),
      ]);
    await moveTo(edge.db, done, 'ready');
    await moveTo(edge.db, mine, 'pending');
    await edge.deps.statuses.changed({ renders: renderIds });
    const pace = await edge.deps.statuses.pace();
    expect(pace).toMatchObject({ bake: { p50: 100_000 }, transcode: { p50: 200_000 }, slots: 1 });
    const path = `/v1/programs/${programId}/readiness`;
    const { eta } = (await (await edge.call('GET', path, { as: who.specialist })).json()) as {
      eta: { likely: string };
    };
    const roundedByMs = new Date(eta.likely).getTime() - Date.now() - 300_000;
    expect(roundedByMs).toBeGreaterThanOrEqual(-1_000);
    expect(roundedByMs).toBeLessThan(stepOf(300_000));
  });
});
