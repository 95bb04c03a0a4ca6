import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  rendersWithVideo,
  restoreCollections,
  videosWithoutRender,
  whileUnclaimed,
} from '../../../lib/db/reconcile.ts';
import { claimRender, findRender } from '../../../lib/db/renders.ts';
import { shaOf } from '../../support/clinic.ts';
import { insertRenders } from '../../support/renders.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();
beforeEach(() => database.db.execute(sql`truncate exercise_renders cascade`));

const recipeHash = shaOf('a recipe');
const orphan = { guid: 'orphan', hashPrefix: recipeHash.slice(0, 32) };
const one = async (change: Parameters<typeof insertRenders>[1][number]) =>
  (await insertRenders(database.db, [{ recipeHash, ...change }]))[0]!;
const never = () => Promise.reject(new Error('must not be run'));

describe('the deletion of a video that no render names', () => {
  it('keeps a render of its hash from being claimed until it has ended', async () => {
    const { id, generation } = await one({});
    const order: string[] = [];
    let end = () => {};
    const deletion = whileUnclaimed(database.db, orphan, async () => {
      order.push('deleting');
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      order.push('deleted');
      return true;
    });
    await expect.poll(() => order).toEqual(['deleting']);
    const claim = claimRender(database.db, { id, generation, token: randomUUID(), by: 'w', leaseMs: 60_000 }).then(
      (claimed) => order.push(`claimed ${claimed?.status}`),
    );
    const other = (await insertRenders(database.db, [{}]))[0]!;
    // Whoever has another hash waits for nothing.
    await claimRender(database.db, { id: other.id, generation: 0, token: randomUUID(), by: 'w', leaseMs: 60_000 });
    expect(order).toEqual(['deleting']);
    end();
    expect(await deletion).toBe(true);
    await claim;
    expect(order).toEqual(['deleting', 'deleted', 'claimed rendering']);
  });

  it('is not begun where a render names the video after all', async () => {
    for (const status of ['pending', 'failed'] as const) {
      await one({ status, videoGuid: orphan.guid, ...(status === 'failed' && { errorCode: 'internal' }) });
      expect(await whileUnclaimed(database.db, orphan, never)).toBe('known');
      await database.db.execute(sql`truncate exercise_renders cascade`);
    }
  });

  it.each([60_000, -60_000])('is not begun while the hash is leased, by a lease that ends in %i ms', async (ms) => {
    await one({ status: 'rendering', leaseToken: randomUUID(), leaseExpiresAt: new Date(Date.now() + ms) });
    expect(await whileUnclaimed(database.db, orphan, never)).toBe('leased');
    expect(
      await whileUnclaimed(database.db, { ...orphan, hashPrefix: shaOf('other').slice(0, 32) }, async () => 1),
    ).toBe(1);
  });

  it('lets go of everything where it fails', async () => {
    const { id, generation } = await one({});
    await expect(whileUnclaimed(database.db, orphan, never)).rejects.toThrow('must not be run');
    const claimed = await claimRender(database.db, { id, generation, token: randomUUID(), by: 'w', leaseMs: 60_000 });
    expect(claimed?.status).toBe('rendering');
  });
});

it('goes through the renders that name a video in pages, each once', async () => {
  const made = await insertRenders(
    database.db,
    Array.from({ length: 7 }, (_, at) => (at % 3 === 2 ? {} : { videoGuid: `video-${at}` })),
  );
  const seen: string[] = [];
  for (let after: string | null = null; ; ) {
    const page = await rendersWithVideo(database.db, { after, limit: 2 });
    seen.push(...page.map(({ videoGuid }) => videoGuid!));
    after = page.at(-1)?.id ?? null;
    if (after === null) break;
  }
  expect(seen).toEqual(made.flatMap(({ videoGuid }) => videoGuid ?? []));
});

it('tells which videos no render names', async () => {
  await one({ videoGuid: 'known' });
  expect(await videosWithoutRender(database.db, ['known', 'unknown'])).toEqual(new Set(['unknown']));
  expect(await videosWithoutRender(database.db, [])).toEqual(new Set());
});

it('notes a collection only where the row still has that video and none is noted', async () => {
  const { id } = await one({ videoGuid: 'mine' });
  const note = (videoGuid: string, collectionId: string) =>
    restoreCollections(database.db, [{ id, videoGuid, collectionId }]);
  expect(await note('another', 'c1')).toEqual(new Set());
  expect(await note('mine', 'c2')).toEqual(new Set([id]));
  expect(await note('mine', 'c3')).toEqual(new Set());
  expect((await findRender(database.db, id))?.videoCollectionId).toBe('c2');
});
