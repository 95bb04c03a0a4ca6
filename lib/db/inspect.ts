import { Client } from 'pg';

export interface PostgresFacts {
  /** As `server_version_num` has it: 150004 is 15.4. */
  versionNumber: number;
  version: string;
  /** False before `bakehouse migrate`. */
  migrated: boolean;
}

/** Asks a Postgres about itself. Throws where it does not answer within a few seconds. */
export async function inspectPostgres(url: string): Promise<PostgresFacts> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 3_000, query_timeout: 3_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<PostgresFacts>(
      `select current_setting('server_version_num')::int as "versionNumber", current_setting('server_version') as version,
              to_regclass('exercise_renders') is not null as migrated`,
    );
    const [facts] = rows;
    if (!facts) throw new Error('Postgres answered nothing.');
    return facts;
  } finally {
    await client.end();
  }
}
