import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { members } from '../../../lib/db/schema/index.ts';
import { aClip, anExercise } from '../../support/clinic.ts';
import { people, problemOf, startEdge, type TestEdge } from './fixture.ts';

const who = people();
let edge: TestEdge;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.close());

const make = async (as: Parameters<TestEdge['call']>[2] & object, json: object) =>
  edge.call('POST', '/v1/exercises', { ...as, json });

describe('making an exercise', () => {
  it('puts a manager’s into their clinic and a superadmin’s on the platform', async () => {
    const own = await make(
      { as: who.manager },
      { names: { en: ' Squat ', 'de-at': 'Hocke' }, repMarks: { turnMs: 900 } },
    );
    expect(own.status).toBe(201);
    expect(await own.json()).toMatchObject({
      tier: 'org',
      orgId: who.manager.org,
      names: { en: 'Squat', 'de-AT': 'Hocke' },
      repMarks: { turnMs: 900 },
      source: null,
      cues: [],
    });
    const platform = await make({ as: who.superadmin }, { names: { en: 'Plank' } });
    expect(await platform.json()).toMatchObject({ tier: 'platform', orgId: null });
  });

  it('makes its author known, once, as one to be told of failures', async () => {
    await make({ as: who.otherManager }, { names: { en: 'One' } });
    await make({ as: who.otherManager }, { names: { en: 'Two' } });
    const known = (await edge.db.select().from(members)).filter((row) => row.subject === who.otherManager.sub);
    expect(known).toMatchObject([{ orgId: who.otherManager.org, role: 'manager' }]);
  });

  it('refuses a tier that is not the author’s', async () => {
    const platform = await make({ as: who.manager }, { names: { en: 'Squat' }, tier: 'platform' });
    expect(await problemOf(platform)).toMatchObject({ httpStatus: 403, code: 'forbidden' });
    const org = await make({ as: who.superadmin }, { names: { en: 'Squat' }, tier: 'org' });
    expect(await problemOf(org)).toMatchObject({ httpStatus: 422, errors: [{ path: 'tier' }] });
  });

  it.each<[string, object, string]>([
    ['no names', {}, 'names'],
    ['an empty set of names', { names: {} }, 'names'],
    ['a name that is blank', { names: { en: '  ' } }, 'names.en'],
    ['a name with a NUL', { names: { en: 'a\0b' } }, 'names.en'],
    ['a language that is none', { names: { '123': 'Squat' } }, 'names.123'],
    ['marks out of order', { names: { en: 'Squat' }, repMarks: { startMs: 5, endMs: 4 } }, 'repMarks'],
    ['a negative mark', { names: { en: 'Squat' }, repMarks: { startMs: -1 } }, 'repMarks.startMs'],
    ['an unknown field', { names: { en: 'Squat' }, orgId: who.otherManager.org }, 'orgId'],
    ['an unknown mark', { names: { en: 'Squat' }, repMarks: { middleMs: 1 } }, 'repMarks.middleMs'],
  ])('refuses %s, naming the field', async (_, json, path) => {
    const problem = await problemOf(await make({ as: who.manager }, json));
    expect(problem).toMatchObject({
      httpStatus: 422,
      code: 'invalid_request',
      contentType: 'application/problem+json',
    });
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
  });
});

describe('changing an exercise', () => {
  it('replaces what is given and keeps the rest', async () => {
    const { id } = await anExercise(edge.db);
    const path = `/v1/exercises/${id}`;
    const renamed = await edge.call('PATCH', path, { as: who.superadmin, json: { names: { de: 'Kniebeuge' } } });
    expect(await renamed.json()).toMatchObject({ names: { de: 'Kniebeuge' }, repMarks: {} });
    const marked = await edge.call('PATCH', path, { as: who.superadmin, json: { repMarks: { startMs: 10 } } });
    expect(await marked.json()).toMatchObject({ names: { de: 'Kniebeuge' }, repMarks: { startMs: 10 } });
    expect((await edge.call('PATCH', path, { as: who.superadmin, json: {} })).status).toBe(200);
  });

  it('refuses what making one would refuse', async () => {
    const { id } = await anExercise(edge.db);
    const response = await edge.call('PATCH', `/v1/exercises/${id}`, {
      as: who.superadmin,
      json: { names: {}, tier: 'org' },
    });
    expect((await problemOf(response)).errors?.map((error) => error.path).sort()).toEqual(['names', 'tier']);
  });
});

describe('reading exercises', () => {
  it('shows the current source and the clips, but not where they are stored', async () => {
    const { id, sourceSha256 } = await anExercise(edge.db);
    await aClip(edge.db, id, 'en', 'start');
    const text = await (await edge.call('GET', `/v1/exercises/${id}`, { as: who.specialist })).text();
    expect(JSON.parse(text)).toMatchObject({
      source: { sha256: sourceSha256, durationMs: 3000, warnings: [] },
      cues: [{ language: 'en', name: 'start', durationMs: 400 }],
    });
    expect(text).not.toContain('zone:');
  });

  it('pages through the platform’s and the clinic’s own, newest first, each once', async () => {
    const fresh = await startEdge();
    try {
      for (const name of ['1', '2', '3'])
        await fresh.call('POST', '/v1/exercises', { as: who.manager, json: { names: { en: name } } });
      await fresh.call('POST', '/v1/exercises', { as: who.superadmin, json: { names: { en: '4' } } });
      await fresh.call('POST', '/v1/exercises', { as: who.otherManager, json: { names: { en: 'theirs' } } });
      const seen: string[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const query: string = cursor ? `&cursor=${cursor}` : '';
        const page = (await (
          await fresh.call('GET', `/v1/exercises?limit=3${query}`, { as: who.specialist })
        ).json()) as {
          items: { names: { en: string } }[];
          nextCursor: string | null;
        };
        seen.push(...page.items.map((item) => item.names.en));
        cursor = page.nextCursor;
        pages += 1;
      } while (cursor !== null);
      expect(seen).toEqual(['4', '3', '2', '1']);
      expect(pages).toBe(2);
      const all = (await (await fresh.call('GET', '/v1/exercises', { as: who.superadmin })).json()) as {
        items: object[];
      };
      expect(all.items).toHaveLength(5);
    } finally {
      await fresh.close();
    }
  });

  it.each(['limit=0', 'limit=101', 'limit=ten', 'cursor=abc'])('refuses ?%s', async (query) => {
    const problem = await problemOf(await edge.call('GET', `/v1/exercises?${query}`, { as: who.manager }));
    expect(problem).toMatchObject({ httpStatus: 422, errors: [{ path: query.split('=')[0] }] });
  });
});
