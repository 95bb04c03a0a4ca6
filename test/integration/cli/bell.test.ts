import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cancelCommand } from '../../../apps/cli/commands/cancel.ts';
import { retryCommand } from '../../../apps/cli/commands/retry.ts';
import { openStatusCache, type StatusCache } from '../../../lib/cache/status-cache.ts';
import { runCommand } from '../../support/cli.ts';
import { silentLog } from '../../support/log.ts';
import { testRedis } from '../../support/redis.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { aRender } from './renders.ts';

const database = useTestDatabase();
const { url, prefix } = testRedis();
let edge: StatusCache;
const rung: string[] = [];

beforeAll(async () => {
  edge = openStatusCache({ redisUrl: url, prefix, log: silentLog });
  edge.onAnyRing((programId) => rung.push(programId));
  // Until it listens, nothing rung can be heard.
  await waitFor(
    async () => {
      await runCommand(cancelCommand(), [(await aRender(database.db, 'pending')).id], env());
      return rung.length > 0;
    },
    { label: 'the edge to listen' },
  );
});
afterAll(() => edge.close());

const env = (redisUrl = url) => ({ DATABASE_URL: database.url, REDIS_URL: redisUrl, REDIS_PREFIX: prefix });

describe('whoever waits for a programme', () => {
  it('hears at once of a render that an operator retries or cancels, and nothing of a dry run', async () => {
    const renders = [
      await aRender(database.db, 'failed'),
      await aRender(database.db, 'failed'),
      await aRender(database.db, 'transcoding'),
    ] as const;
    const [untouched, retried, cancelled] = renders;
    await runCommand(retryCommand(), [untouched.id, '--dry-run'], env());
    await runCommand(retryCommand(), [retried.id], env());
    await runCommand(cancelCommand(), [cancelled.id], env());
    const ofThese = () => rung.filter((id) => renders.some(({ programId }) => programId === id));
    await expect.poll(ofThese).toEqual([retried.programId, cancelled.programId]);
  });
});

describe('where Redis does not answer', () => {
  const retried = async (redisUrl: string) => {
    const { id } = await aRender(database.db, 'failed');
    return runCommand(retryCommand(), [id, '--json'], env(redisUrl));
  };

  it('a command does what it was asked to, and says nothing of it', async () => {
    expect(await retried('redis://127.0.0.1:1')).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('a command waits for one that hangs no longer than it must', async () => {
    const hung = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => hung.once('listening', resolve));
    const { port } = hung.address() as { port: number };
    expect(await retried(`redis://127.0.0.1:${port}`)).toMatchObject({ exitCode: 0, stderr: '' });
    hung.close();
  });
});
