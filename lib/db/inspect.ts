import postgres from 'postgres';

export interface PostgresFacts {
  /** As `server_version_num` has it: 150004 is 15.4. */
  versionNumber: number;
  version: string;
  /** False before `bakehouse migrate`. */
  migrated: boolean;
}

/** Asks a Postgres about itself. Throws where it does not answer within a few seconds. */
export async function inspectPostgres(url: string): Promise<PostgresFacts> {
  const sql = postgres(url, { max: 1, connect_timeout: 3, onnotice: () => {} });
  try {
    const [row] = await sql`
      select current_setting('server_version_num')::int as number, current_setting('server_version') as version,
             to_regclass('exercise_renders') is not null as migrated`;
    return { versionNumber: row?.number ?? 0, version: row?.version ?? 'unknown', migrated: row?.migrated ?? false };
  } finally {
    await sql.end({ timeout: 1 });
  }
}
