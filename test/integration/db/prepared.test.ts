import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../../lib/db/client.ts';
import { move } from '../../../lib/db/move.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const test = useTestDatabase();

/** A pool of one connection, so that what that connection keeps can be seen. */
async function withOneConnection(work: (db: ReturnType<typeof openDatabase>['db']) => Promise<void>): Promise<void> {
  const database = openDatabase(test.url, { max: 1 });
  try {
    await work(database.db);
  } finally {
    await database.close();
  }
}

describe('a statement', () => {
  it('is planned once and kept from its second use on', async () => {
    await withOneConnection(async (db) => {
      const kept = async () => {
        const { rows } = await db.execute(sql.raw(`select statement from pg_prepared_statements -- ${Math.random()}`));
        return rows.filter(({ statement }) => String(statement).includes('as twice'));
      };
      const ask = (value: number) => db.execute<{ twice: number }>(sql`select ${value}::int * 2 as twice`);
      expect((await ask(1)).rows).toEqual([{ twice: 2 }]);
      expect(await kept()).toHaveLength(0);
      expect((await ask(2)).rows).toEqual([{ twice: 4 }]);
      expect((await ask(3)).rows).toEqual([{ twice: 6 }]);
      expect(await kept()).toHaveLength(1);
    });
  });

  it('whose text varies is not kept, however many there are', async () => {
    await withOneConnection(async (db) => {
      for (let nth = 0; nth < 600; nth++) await db.execute(sql.raw(`select ${nth} as varied`));
      for (let nth = 0; nth < 600; nth++) await db.execute(sql.raw(`select ${nth} as varied`));
      const { rows } = await db.execute<{ kept: number }>(
        sql`select count(*)::int as kept from pg_prepared_statements where statement like '%as varied'`,
      );
      expect(rows[0]?.kept).toBe(500);
    });
  });

  it('that moves a render survives a migration that adds a column', async () => {
    await withOneConnection(async (db) => {
      const tryMove = () => move(db, 'lease-expired', { where: sql`r.lease_expires_at < now()`, cause: 'test' });
      for (let nth = 0; nth < 3; nth++) expect(await tryMove()).toEqual([]);
      await test.db.execute(sql`alter table exercise_renders add column added_by_a_later_version text`);
      expect(await tryMove()).toEqual([]);
    });
  });
});
