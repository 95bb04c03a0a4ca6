import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeClip } from '../support/ffmpeg.ts';
import { runCli } from '../support/stack.ts';
import { makeTempDir } from '../support/temp-dir.ts';

const resultSchema = z.strictObject({
  programId: z.uuid(),
  status: z.string(),
  renders: z.array(
    z.strictObject({
      id: z.uuid(),
      status: z.string(),
      recipeHash: z.string(),
      masterSha256: z.string().nullable(),
      durationMs: z.number().nullable(),
      hlsUrl: z.string().nullable(),
      manifestUrl: z.string().nullable(),
    }),
  ),
  bakes: z.int(),
  elapsedMs: z.int(),
});

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1) ?? '';

describe('bakehouse demo', () => {
  it('ends ready with its result as the last line, and a second run bakes nothing', { timeout: 200_000 }, async () => {
    const dataDir = await makeTempDir();
    const clip = await makeClip(await makeTempDir(), { seconds: 1, size: '320x240', rate: 25, audio: false });
    const demo = () => runCli(['demo', '--exit', '--json', '--data-dir', dataDir, '--source', clip]);

    const first = await demo();
    expect(first.exitCode, first.stderr).toBe(0);
    const baked = resultSchema.parse(JSON.parse(lastLine(first.stdout)));
    expect(baked).toMatchObject({ status: 'ready', bakes: 1, renders: [{ status: 'ready', durationMs: 5_000 }] });

    const second = await demo();
    expect(second.exitCode, second.stderr).toBe(0);
    expect(second.stderr).toContain('cache hit for all');
    const again = resultSchema.parse(JSON.parse(lastLine(second.stdout)));
    expect(again).toMatchObject({ status: 'ready', bakes: 0, renders: baked.renders });
  });

  it('says in a sentence what is wrong with a file that cannot be used, and leaves nothing running', {
    timeout: 100_000,
  }, async () => {
    const dir = await makeTempDir();
    const file = join(dir, 'notes.mp4');
    await writeFile(file, 'no video at all');
    const { exitCode, stderr } = await runCli([
      'demo',
      '--exit',
      '--json',
      '--data-dir',
      join(dir, 'data'),
      '--source',
      file,
    ]);
    expect(exitCode).toBe(1);
    expect(lastLine(stderr)).toMatch(/^bakehouse: .*notes\.mp4.*\.$/);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe('bakehouse', () => {
  it('names what is wrong with its configuration and what it expects', async () => {
    const { exitCode, stderr } = await runCli(['migrate'], { DATABASE_URL: 'mysql://somewhere' });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/DATABASE_URL: expects a URL \(postgres:/);
  });

  it('makes a token only with a secret, and only for a role that fits its organisation', async () => {
    const dataDir = await makeTempDir();
    const env = { BAKEHOUSE_DATA_DIR: dataDir };
    expect(await runCli(['token'], env)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('JWT_SECRET') });
    const JWT_SECRET = 'a-secret-of-at-least-thirty-two-characters';
    expect(await runCli(['token'], { ...env, JWT_SECRET })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('--org'),
    });
    const { stdout } = await runCli(['token', '--role', 'ops'], { ...env, JWT_SECRET });
    expect(stdout.split('.')).toHaveLength(3);
  });

  it('finds everything it needs on a machine that passes these tests', async () => {
    const { exitCode, stdout } = await runCli(['doctor', '--json'], { BAKEHOUSE_DATA_DIR: await makeTempDir() });
    expect(JSON.parse(stdout)).toSatisfy((findings: { ok: boolean }[]) => findings.every(({ ok }) => ok));
    expect(exitCode).toBe(0);
  });

  it('says what mends it where a Redis may drop jobs or a Postgres cannot be reached', async () => {
    const env = {
      BAKEHOUSE_DATA_DIR: await makeTempDir(),
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      FFMPEG_PATH: '/nowhere/ffmpeg',
    };
    const { exitCode, stdout } = await runCli(['doctor'], env);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/WRONG {2}Postgres .*\n.*→ Check DATABASE_URL/);
    expect(stdout).toMatch(/WRONG {2}ffmpeg .*FFMPEG_PATH/);
  });
});
