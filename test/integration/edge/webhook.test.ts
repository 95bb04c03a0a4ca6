import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signWebhook } from '../../../lib/bunny/webhook.ts';
import { webhookEvents } from '../../../lib/db/schema/index.ts';
import { DEAD, problemOf, READ_ONLY_KEY, startEdge, type TestEdge } from './fixture.ts';

const TOKEN = 'a-shared-secret-in-the-url';
const PATH = '/webhooks/bunnystream';
const event = {
  IsLiveStreamWebhook: false,
  VideoLibraryId: 133,
  VideoGuid: '657bb740-a71b-4529-a012-528021c31a92',
  Status: 3,
};
const text = JSON.stringify(event);

let edge: TestEdge;
beforeAll(async () => {
  edge = await startEdge({ BUNNY_WEBHOOK_TOKEN: TOKEN });
});
afterAll(() => edge.close());
beforeEach(() => edge.db.delete(webhookEvents));

const stored = () => edge.db.select().from(webhookEvents);
const signed = (body: string, key = READ_ONLY_KEY) => signWebhook(key, Buffer.from(body));
const post = (body: string, headers: Record<string, string>, path = PATH) =>
  edge.call('POST', path, { body, headers: { 'content-type': 'application/json; charset=utf-8', ...headers } });

describe('a delivery that is signed', () => {
  it('is stored as it came, answered and announced', async () => {
    // Spacing belongs to what is signed.
    const body = JSON.stringify(event, null, 1);
    const response = await post(body, signed(body));
    expect(response.status).toBe(200);
    const { id } = (await response.json()) as { id: string };
    expect(await stored()).toMatchObject([
      { id, videoGuid: event.VideoGuid, libraryId: 133, status: 3, body, verifiedBy: 'signature', appliedAt: null },
    ]);
    await expect.poll(() => edge.deps.queues.webhooks.getJob(`webhook-${id}`)).toMatchObject({ data: { eventId: id } });
  });

  it('may be signed with any of the keys', async () => {
    expect((await post(text, signed(text, 'an-older-key'))).status).toBe(200);
  });

  it('is stored each time it comes', async () => {
    for (let i = 0; i < 3; i++) expect((await post(text, signed(text))).status).toBe(200);
    expect(await stored()).toHaveLength(3);
  });

  it.each([
    ['a status nobody knows', { ...event, Status: 77 }],
    ['a video nobody knows', { ...event, VideoGuid: 'never-heard-of' }],
    ['fields nobody knows', { ...event, Resolution: '720p' }],
  ])('is stored with %s', async (_, odd) => {
    const body = JSON.stringify(odd);
    expect((await post(body, signed(body))).status).toBe(200);
    expect(await stored()).toMatchObject([{ status: odd.Status, videoGuid: odd.VideoGuid, body }]);
  });

  it.each([
    ['is not JSON', '{"VideoGuid":'],
    ['is empty', ''],
    ['is a list', '[]'],
    ['has no guid', JSON.stringify({ VideoLibraryId: 133, Status: 3 })],
    ['has a status that is no number', JSON.stringify({ ...event, Status: '3' })],
    ['has a guid that is none', JSON.stringify({ ...event, VideoGuid: 'a\0b' })],
    ['has a status beyond all bounds', JSON.stringify({ ...event, Status: 2 ** 40 })],
  ])('but %s answers 400', async (_, body) => {
    expect(await problemOf(await post(body, signed(body)))).toMatchObject({ httpStatus: 400, code: 'malformed_body' });
    expect(await stored()).toEqual([]);
  });

  it('is answered at once where Redis is away', async () => {
    const down = await startEdge({ REDIS_URL: `redis://${DEAD}` });
    try {
      const start = performance.now();
      expect((await down.call('POST', PATH, { body: text, headers: signed(text) })).status).toBe(200);
      expect(performance.now() - start).toBeLessThan(1000);
      expect(await down.db.select().from(webhookEvents)).toHaveLength(1);
    } finally {
      await down.close();
    }
  });
});

describe('a delivery is refused, whatever is in it,', () => {
  const good = signed(text);
  const refused: [string, string, Record<string, string>][] = [
    ['unsigned', text, {}],
    ['signed with another key', text, signed(text, 'another-key')],
    ['changed by a byte', text.replace('3}', '5}'), good],
    ['signed but for a space', `${text} `, good],
    ['of another algorithm', text, { ...good, 'X-BunnyStream-Signature-Algorithm': 'hmac-sha1' }],
    ['of another version', text, { ...good, 'X-BunnyStream-Signature-Version': 'v2' }],
    ['without saying the algorithm', text, { 'X-BunnyStream-Signature': good['X-BunnyStream-Signature'] ?? '' }],
    ['with an empty signature', text, { ...good, 'X-BunnyStream-Signature': '' }],
    ['not even JSON and unsigned', '{', {}],
  ];
  it.each(refused)('%s', async (_, body, headers) => {
    expect(await problemOf(await post(body, headers))).toMatchObject({ httpStatus: 401, code: 'unauthorized' });
    expect(await stored()).toEqual([]);
  });

  it('over 64 KiB, whether it says so or not', async () => {
    const body = JSON.stringify({ ...event, padding: 'x'.repeat(64 * 1024) });
    expect(await problemOf(await post(body, signed(body)))).toMatchObject({
      httpStatus: 413,
      code: 'payload_too_large',
    });
    const chunked = await edge.call('POST', PATH, { body: new Blob([body]).stream(), headers: signed(body) });
    expect(await problemOf(chunked)).toMatchObject({ httpStatus: 413 });
    const claimed = await post(body, { ...signed(body), 'content-length': String(body.length) });
    expect(claimed.status).toBe(413);
    expect(await stored()).toEqual([]);
  });
});

describe('the token', () => {
  it('vouches for a delivery without a signature', async () => {
    expect((await post(text, {}, `${PATH}?token=${TOKEN}`)).status).toBe(200);
    expect(await stored()).toMatchObject([{ verifiedBy: 'token' }]);
  });

  it.each(['', 'token=', 'token=wrong', `token=${TOKEN}x`, `TOKEN=${TOKEN}`, `token=a&token=${TOKEN}`])(
    'is not %j',
    async (query) => {
      expect((await post(text, {}, `${PATH}?${query}`)).status).toBe(401);
    },
  );

  it('does not save a wrong signature', async () => {
    expect((await post(text, signed(text, 'another-key'), `${PATH}?token=${TOKEN}`)).status).toBe(401);
  });

  it('opens nothing where none is set', async () => {
    const strict = await startEdge();
    try {
      for (const token of ['', 'undefined', 'null']) {
        expect((await strict.call('POST', `${PATH}?token=${token}`, { body: text })).status).toBe(401);
      }
    } finally {
      await strict.close();
    }
  });
});
