import { randomUUID } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';

export interface TestDatabase {
  url: string;
  /** Also ends whatever is still connected to it. */
  drop(): Promise<void>;
}

/** A migrated, empty database of the caller's own, cloned from the run's template. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const adminUrl = inject('databaseAdminUrl');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await asAdmin((sql) => sql`create database ${sql(name)} template ${sql(inject('databaseTemplate'))}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => asAdmin((sql) => sql`drop database if exists ${sql(name)} with (force)`),
  };
}

async function asAdmin(run: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(inject('databaseAdminUrl'), { max: 1, onnotice: () => undefined });
  try {
    await run(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
