import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { built } from '../../support/built.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { aRender } from './renders.ts';

const database = useTestDatabase();

const bakehouse = (script: string, databaseUrl: string) =>
  execa('bash', ['-o', 'pipefail', '-c', script.replace('bakehouse', `node ${built('apps/cli/main.ts')}`)], {
    env: { DATABASE_URL: databaseUrl },
    reject: false,
  });

describe('the bakehouse command', () => {
  it('does all that it was asked to, though nobody reads what it says', async () => {
    for (let nth = 0; nth < 3; nth++) await aRender(database.db, 'failed');
    const { exitCode, stderr } = await bakehouse('bakehouse retry --all | true', database.url);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const renders = await database.db.select({ status: exerciseRenders.status }).from(exerciseRenders);
    expect(renders.map(({ status }) => status)).toEqual(['pending', 'pending', 'pending']);
  });

  it('says why Postgres failed it, and not with which statement', async () => {
    const { exitCode, stdout, stderr } = await bakehouse(
      'bakehouse retry --all',
      'postgres://nobody:secret@127.0.0.1:1/x',
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toBe('bakehouse: Postgres: connect ECONNREFUSED 127.0.0.1:1');
  });
});
