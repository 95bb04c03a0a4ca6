import { afterEach, describe, expect, it, vi } from 'vitest';
import { COMMANDS, run } from '../../../apps/cli/run.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** As a script calls it: with what it is told on stdout, and what a person is told on stderr. */
async function bakehouse(args: string[], env: Record<string, string> = { DATABASE_URL: database.url }) {
  const said = { stdout: '', stderr: '' };
  for (const name of ['DATABASE_URL', 'MEDIA_URL', 'MEDIA_TOKEN']) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  for (const stream of ['stdout', 'stderr'] as const)
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      said[stream] += String(text);
      return true;
    });
  const status = await run(['node', 'bakehouse', ...args]);
  vi.restoreAllMocks();
  return { status, ...said };
}

describe('a command that fails with --json', () => {
  it.each([...COMMANDS.keys()])('says so in one JSON object: %s with an option that it does not know', async (name) => {
    const { status, stdout, stderr } = await bakehouse([name, '--json', '--nonsense']);
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      error: { code: 'usage', message: expect.stringMatching(/^unknown option '--/) },
    });
    expect(stderr).toContain('unknown option');
  });

  it.each<[string, string[], Record<string, string> | undefined]>([
    ['usage', ['retry', '--status', 'done'], undefined],
    ['usage', ['cancel'], undefined],
    ['usage', ['replay'], undefined],
    ['usage', ['nonsense'], undefined],
    ['unknown_id', ['retry', 'ffffffff'], undefined],
    ['unknown_id', ['replay', '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10'], undefined],
    ['configuration', ['reconcile'], undefined],
    ['configuration', ['retry', '--all'], { DATABASE_URL: 'mysql://somewhere' }],
    ['database', ['doctor', '--pipeline'], { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }],
  ])('says which kind of failure it is: %s of %j', async (code, args, env) => {
    const { status, stdout, stderr } = await bakehouse([...args, '--json'], env);
    expect([status, JSON.parse(stdout)]).toEqual([1, { error: { code, message: expect.any(String) } }]);
    expect(stderr).not.toBe('');
  });

  it('names the folder on which nothing runs', async () => {
    const dataDir = await makeTempDir();
    const { stdout } = await bakehouse(['cancel', '--all', '--json', '--data-dir', dataDir], {});
    expect(JSON.parse(stdout)).toEqual({
      error: { code: 'no_installation', message: expect.stringContaining(dataDir) },
    });
  });
});

it('without --json nothing is said on stdout, and help is no failure', async () => {
  expect(await bakehouse(['retry', '--nonsense'])).toMatchObject({ status: 1, stdout: '' });
  expect(await bakehouse(['retry', '--help', '--json'])).toMatchObject({ status: 0, stderr: '' });
});
