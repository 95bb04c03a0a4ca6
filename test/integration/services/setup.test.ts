import { once } from 'node:events';
import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { beforeEach, describe, expect, it } from 'vitest';
import { redisFromSetup } from '../../../lib/services/setup-file.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

const repository = fileURLToPath(new URL('../../../', import.meta.url));

/** A clone of its own, whose PATH holds only what a test puts there: nothing real can be installed or found. */
let clone: string;
let bin: string;

beforeEach(async () => {
  clone = await makeTempDir();
  bin = join(clone, 'bin');
  await mkdir(bin);
  await mkdir(join(clone, 'scripts'));
  for (const file of ['package.json', 'package-lock.json', 'scripts/setup.mjs']) {
    await copyFile(join(repository, file), join(clone, file));
  }
  await symlink(join(repository, 'node_modules'), join(clone, 'node_modules'));
  await symlink('/usr/bin/env', join(bin, 'env'));
});

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(bin, name), 0o755);
}

const setup = (env: Record<string, string> = {}, programs: string[] = []) =>
  execa(process.execPath, [join(clone, 'scripts/setup.mjs'), ...programs], {
    extendEnv: false,
    env: { PATH: bin, FFMPEG_PATH: '/given/ffmpeg', FFPROBE_PATH: '/given/ffprobe', ...env },
    reject: false,
  });

const log = async () => (await readFile(join(clone, 'log'), 'utf8').catch(() => '')).trim().split('\n');

describe('setup', () => {
  it('does and says nothing where all is there', async () => {
    await program('redis-server', '');
    expect(await setup()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('leaves a Redis that is given alone', async () => {
    expect(await setup({ REDIS_URL: 'redis://somewhere' })).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('that can install nothing fails, names the ways, and keeps stdout clean', async () => {
    const { exitCode, stdout, stderr } = await setup();
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    for (const way of ['apt-get install redis-server', 'brew install redis', 'Docker', 'REDIS_URL']) {
      expect(stderr).toContain(way);
    }
  });

  it('refuses an older Node with a plain sentence', async () => {
    const manifest = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
    await writeFile(join(clone, 'package.json'), JSON.stringify({ ...manifest, engines: { node: '>=99.1.0' } }));
    const { exitCode, stderr } = await setup();
    expect(exitCode).toBe(1);
    expect(stderr).toBe(`setup: Node 99.1.0 or newer is needed, and this is Node ${process.versions.node}.`);
  });

  it('installs the packages where they do not match the lock file', async () => {
    await program('redis-server', '');
    const lock = JSON.parse(await readFile(join(repository, 'package-lock.json'), 'utf8'));
    lock.packages['node_modules/zod'].version = '99.0.0';
    await writeFile(join(clone, 'package-lock.json'), JSON.stringify(lock));
    const npm = join(clone, 'npm.mjs');
    await writeFile(
      npm,
      `import { writeFileSync } from 'node:fs'; writeFileSync('log', process.argv.slice(2).join(' '));`,
    );
    const { exitCode, stdout } = await setup({ npm_execpath: npm });
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
    expect(await log()).toEqual(['ci --no-audit --no-fund --include=dev --include=optional']);
  });

  it('shows what npm said where the packages cannot be installed', async () => {
    const npm = join(clone, 'npm.mjs');
    await writeFile(npm, `console.error('npm has no network'); process.exit(1);`);
    await writeFile(
      join(clone, 'package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/new': { version: '1.0.0' } } }),
    );
    const { exitCode, stdout, stderr } = await setup({ npm_execpath: npm });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toContain('npm has no network');
  });

  it('installs Redis with apt-get, after waiting for another one to finish', async () => {
    await program('sudo', '[ "$1" = -n ] && shift; exec "$@"');
    await program('true', '');
    await program(
      'apt-get',
      `echo "$DEBIAN_FRONTEND $*" >> log
       case "$*" in *install*)
         if [ ! -e waited ]; then : > waited; echo "E: Could not get lock /var/lib/dpkg/lock-frontend" >&2; exit 100; fi
         /bin/cp "$0" ${bin}/redis-server
       esac`,
    );
    const { exitCode, stdout, stderr } = await setup();
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
    expect(stderr).toContain('another apt is running');
    const install = 'noninteractive -q install -y --no-install-recommends redis-server';
    expect(await log()).toEqual(['noninteractive -q update', install, install]);
  });

  it('installs only what is missing with Homebrew', async () => {
    await program('brew', `echo "$*" >> log; /bin/cp "$0" ${bin}/redis-server`);
    expect(await setup()).toMatchObject({ exitCode: 0, stdout: '' });
    expect(await log()).toEqual(['install --quiet redis']);
  });

  it('installs what else is asked for, or says that it is missing', async () => {
    await program('redis-server', '');
    const { exitCode, stderr } = await setup({}, ['jq']);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('install jq so that it is on PATH');
    await program('brew', `echo "$*" >> log; /bin/cp "$0" ${bin}/jq`);
    expect(await setup({}, ['jq'])).toMatchObject({ exitCode: 0, stdout: '' });
    expect(await log()).toEqual(['install --quiet jq']);
  });

  it('falls back to Docker, and writes down where its Redis listens', async () => {
    const redis = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(redis, 'listening');
    const { port } = redis.address() as AddressInfo;
    await program('docker', `case "$*" in "compose port redis 6379") echo 127.0.0.1:${port} ;; esac; echo "$*" >> log`);
    expect(await setup()).toMatchObject({ exitCode: 0, stdout: '' });
    const commands = ['info', 'compose up -d --wait redis', 'compose port redis 6379'];
    expect(await log()).toEqual(commands);
    expect(await redisFromSetup(join(clone, '.bakehouse/services.json'))).toBe(`redis://127.0.0.1:${port}`);

    expect(await setup()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await log()).toEqual(commands);

    redis.close();
    expect(await setup()).toMatchObject({ exitCode: 1 });
    expect(await log()).toEqual([...commands, ...commands]);
  });

  it('prefers a Redis on PATH over the one in Docker', async () => {
    await mkdir(join(clone, '.bakehouse'));
    await writeFile(join(clone, '.bakehouse/services.json'), '{"redisUrl":"redis://127.0.0.1:1"}');
    await program('valkey-server', '');
    expect(await setup()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await redisFromSetup(join(clone, '.bakehouse/services.json'))).toBeUndefined();
  });
});
