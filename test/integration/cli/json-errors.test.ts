import { afterEach, describe, expect, it, vi } from 'vitest';
import { COMMANDS, run } from '../../../apps/cli/run.ts';
import { lockFolder } from '../../../lib/services/folder-lock.ts';
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

  it('says that the data folder is in use, and by whom', async () => {
    const dataDir = await makeTempDir();
    const lock = await lockFolder(dataDir);
    try {
      const { status, stdout } = await bakehouse(['up', '--json', '--data-dir', dataDir], {});
      const message = expect.stringContaining(`${dataDir} is in use by process ${process.pid}`);
      expect([status, JSON.parse(stdout)]).toEqual([1, { error: { code: 'folder_in_use', message } }]);
    } finally {
      await lock.release();
    }
  });

  it('names the folder on which nothing runs', async () => {
    const dataDir = await makeTempDir();
    const { stdout } = await bakehouse(['cancel', '--all', '--json', '--data-dir', dataDir], {});
    expect(JSON.parse(stdout)).toEqual({
      error: { code: 'no_installation', message: expect.stringContaining(dataDir) },
    });
  });
});

describe('a token that cannot be', () => {
  it.each([
    [['--org', 'nope'], "option '--org <id>' argument 'nope' is invalid. Expects an id (a UUID)."],
    [
      ['--sub', ''],
      "option '--sub <subject>' argument '' is invalid. Expects 1 to 200 characters, none of them a control character.",
    ],
    [
      ['--role', 'ops', '--org', '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10'],
      'A token of ops belongs to no organisation: leave --org out, or give --role manager, specialist or patient.',
    ],
  ])('is refused in a sentence that names the option: %j', async (args, message) => {
    const env = { JWT_SECRET: 'a-secret-for-tests-that-is-long-enough' };
    const forPeople = await bakehouse(['token', ...args], env);
    expect(forPeople).toMatchObject({ status: 1, stdout: '' });
    expect(forPeople.stderr).toMatch(/^[^\n]+\n$/);
    expect(forPeople.stderr).toContain(message);
    const forScripts = await bakehouse(['token', '--json', ...args], env);
    expect([forScripts.status, JSON.parse(forScripts.stdout)]).toEqual([1, { error: { code: 'usage', message } }]);
  });
});

it('a token is printed alone, and with --json in an object', async () => {
  const args = ['token', '--role', 'ops'];
  const env = { JWT_SECRET: 'a-secret-for-tests-that-is-long-enough' };
  expect((await bakehouse(args, env)).stdout).toMatch(/^[\w.-]+\n$/);
  expect(JSON.parse((await bakehouse([...args, '--json'], env)).stdout)).toEqual({
    token: expect.stringMatching(/^[\w.-]+$/),
  });
});

it('without --json nothing is said on stdout, and help is no failure', async () => {
  expect(await bakehouse(['retry', '--nonsense'])).toMatchObject({ status: 1, stdout: '' });
  expect(await bakehouse(['retry', '--help', '--json'])).toMatchObject({ status: 0, stderr: '' });
});
