import { createHash } from 'node:crypto';
import { chmod, chown, cp, lstat, mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execa } from 'execa';

interface Account {
  uid: number;
  gid: number;
}

export interface PostgresHome {
  /** The tree that holds bin/postgres and bin/initdb, reachable for the account. */
  native: string;
  /** Owned by the account and closed to others. */
  folder: string;
  /** The account Postgres runs as; undefined for our own. */
  account: Account | undefined;
}

/**
 * Where Postgres runs from and keeps its data: the installed binaries and `<dataDir>/postgres`.
 *
 * Postgres refuses to run as root, so for root it runs as an unprivileged account. That account cannot pass through a
 * folder closed to others, such as /root or one made by `mktemp -d`, neither to the binaries nor to the data; spawning
 * then fails with EACCES. In that case both live in `outsideFolder(dataDir)`.
 */
export async function preparePostgresHome(dataDir: string, installed: string): Promise<PostgresHome> {
  if (process.getuid?.() !== 0) {
    const folder = join(dataDir, 'postgres');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { native: installed, folder, account: undefined };
  }
  const account = await unprivilegedAccount();
  const inPlace = (await isOpenToOthers(join(installed, 'bin', 'postgres'))) && (await isOpenToOthers(dataDir));
  const base = inPlace ? dataDir : await makeOutsideFolder(dataDir);
  const native = inPlace ? installed : await copyNative(installed, base);
  const folder = join(base, 'postgres');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chown(folder, account.uid, account.gid);
  return { native, folder, account };
}

/** Removes everything `preparePostgresHome` made for this data folder. No Postgres may be running in it. */
export async function removePostgresHome(dataDir: string): Promise<void> {
  await rm(join(dataDir, 'postgres'), { recursive: true, force: true });
  const outside = outsideFolder(await realpath(dataDir));
  if (await isPrivateFolder(outside)) await rm(outside, { recursive: true, force: true });
}

/** In /var/tmp, which unlike /tmp survives a reboot; named after the data folder, so that the next run finds it again. */
const outsideFolder = (dataDir: string): string =>
  join('/var/tmp', `bakehouse-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`);

async function makeOutsideFolder(dataDir: string): Promise<string> {
  const folder = outsideFolder(await realpath(dataDir));
  await mkdir(folder, { recursive: true, mode: 0o711 });
  // /var/tmp is open to everybody: whoever made this folder before us could swap the binaries we are about to run.
  if (!(await isPrivateFolder(folder))) {
    throw new Error(`${folder} belongs to another user; remove it, or set DATABASE_URL to use another Postgres.`);
  }
  await chmod(folder, 0o711);
  return folder;
}

async function isPrivateFolder(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

/** The copy's folder appears by rename once it is whole; it is made again where another version is installed. */
async function copyNative(installed: string, base: string): Promise<string> {
  const { mtimeMs, size } = await stat(join(installed, 'bin', 'postgres'));
  const native = join(base, `native-${size}-${Math.round(mtimeMs)}`);
  if (await stat(native).catch(() => undefined)) return native;
  for (const other of await readdir(base)) {
    if (other.startsWith('native-')) await rm(join(base, other), { recursive: true, force: true });
  }
  const partial = `${native}.partial`;
  await cp(installed, partial, { recursive: true, verbatimSymlinks: true });
  // Installed under umask 077 the files are closed to others too.
  await execa('chmod', ['-R', 'a+rX', partial]);
  await rename(partial, native);
  return native;
}

/** `postgres` where a packaged Postgres has made that account; else `nobody`, so that no account need be added. */
async function unprivilegedAccount(): Promise<Account> {
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = await Promise.all([numericId('-u', name), numericId('-g', name)]);
    if (uid && gid) return { uid, gid };
  }
  throw new Error(
    'Postgres does not run as root, and there is no account "postgres" or "nobody" to run it as. Run as another user, or set DATABASE_URL.',
  );
}

async function numericId(flag: '-u' | '-g', name: string): Promise<number> {
  const { stdout, exitCode } = await execa('id', [flag, name], { reject: false });
  return exitCode === 0 ? Number(stdout) : 0;
}

/** Whether every user may read this file or folder and pass through everything above it. */
async function isOpenToOthers(path: string): Promise<boolean> {
  for (let current = await realpath(path); ; current = dirname(current)) {
    const { mode } = await stat(current);
    if ((mode & 0o001) === 0) return false;
    if (dirname(current) === current) return true;
  }
}
