import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { migrate } from '../../../lib/db/migrate.ts';

export interface BenchDatabase {
  url: string;
  name: string;
  drop(): Promise<void>;
}

/** A migrated, empty database on the server of `adminUrl`. */
export async function createDatabase(adminUrl: string): Promise<BenchDatabase> {
  const name = `bench_${randomUUID().replaceAll('-', '')}`;
  await asAdmin(adminUrl, `create database ${name}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  await migrate(url.href);
  return { url: url.href, name, drop: () => asAdmin(adminUrl, `drop database if exists ${name} with (force)`) };
}

async function asAdmin(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
