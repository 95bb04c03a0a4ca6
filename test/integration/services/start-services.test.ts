import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { processBirth } from '../../../lib/services/process-birth.ts';
import { removeServiceData, type Services, startServices } from '../../../lib/services/start-services.ts';
import { built } from '../../support/built.ts';
import { silentLog } from '../../support/log.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';

const noPort = { databaseUrl: 'postgres://nobody@127.0.0.1:1/none', redisUrl: 'redis://127.0.0.1:1' };

let dataDir: string;
const running: Services[] = [];

/** Postgres alone unless a test says otherwise: Redis has a file of its own. */
async function start(options: Partial<Parameters<typeof startServices>[0]> = {}): Promise<Services> {
  const services = await startServices({
    dataDir,
    redisUrl: noPort.redisUrl,
    path: process.env.PATH,
    durable: false,
    log: silentLog,
    ...options,
  });
  running.push(services);
  return services;
}

async function query<T>(url: string, run: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    return await run(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

const keepNote = (url: string) =>
  query(url, async (sql) => {
    await sql`create table note (text text)`;
    await sql`insert into note values ('kept')`;
  });
const readNote = (url: string) => query(url, async (sql) => (await sql`select text from note`)[0]?.text);

beforeEach(async () => {
  dataDir = await makeTempDir();
  // Open to the account that Postgres runs as where we are root, which spares every test a copy of its binaries.
  await chmod(dataDir, 0o711);
});

afterEach(async () => {
  for (const services of running.splice(0)) await services.stop();
  await removeServiceData(dataDir);
});

describe('Postgres of our own', () => {
  it('runs in a folder closed to others, also for root, and finds its data again', async () => {
    await chmod(dataDir, 0o700);
    const first = await start();
    await keepNote(first.databaseUrl);
    await first.stop();
    expect(first.postgresPid).toBeNull();
    const second = await start();
    expect(await readNote(second.databaseUrl)).toBe('kept');
  });

  it('killed, is started again on the same port with its data and its password', async () => {
    const services = await start();
    const url = services.databaseUrl;
    await keepNote(url);
    const killed = services.postgresPid ?? 0;
    process.kill(killed, 'SIGKILL');
    await waitFor(() => services.postgresPid !== null && services.postgresPid !== killed, {
      label: 'another Postgres',
    });
    expect(services.databaseUrl).toBe(url);
    expect(await readNote(url)).toBe('kept');
    const stranger = new URL(url);
    stranger.password = 'wrong';
    await expect(readNote(stranger.href)).rejects.toThrow('password authentication failed');
  });

  it('starts although its pid file names a living process that is somebody else', async () => {
    const first = await start();
    const [{ directory } = { directory: '' }] = await query(
      first.databaseUrl,
      (sql) => sql<{ directory: string }[]>`select current_setting('data_directory') as directory`,
    );
    await first.stop();
    await writeFile(join(directory, 'postmaster.pid'), `${process.pid}\n${directory}\n`);
    const second = await start();
    expect(second.postgresPid).not.toBeNull();
  });

  it('says what Postgres said when it cannot start', async () => {
    const first = await start();
    const [{ file } = { file: '' }] = await query(
      first.databaseUrl,
      (sql) => sql<{ file: string }[]>`select current_setting('config_file') as file`,
    );
    await first.stop();
    await writeFile(file, 'no_such_setting = 1\n');
    await expect(start()).rejects.toThrow('no_such_setting');
  });

  it('is made anew where a fresh start is asked for', async () => {
    const first = await start();
    await keepNote(first.databaseUrl);
    await first.stop();
    const second = await start({ fresh: true });
    await expect(readNote(second.databaseUrl)).rejects.toThrow('relation "note" does not exist');
  });
});

describe('the data folder', () => {
  const claims = () => readdir(join(dataDir, 'claims'));
  const claim = async (content: string) => {
    await mkdir(join(dataDir, 'claims'));
    await writeFile(join(dataDir, 'claims', 'earlier'), content);
  };

  it('is refused to a second run, with a sentence that names the first', async () => {
    await start(noPort);
    await expect(start(noPort)).rejects.toThrow(`The data folder ${dataDir} is in use by process ${process.pid}.`);
  });

  it('goes to exactly one of many runs that start at once over the claim of a dead one', async () => {
    await claim(JSON.stringify({ pid: process.pid, birth: 'yesterday' }));
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => start(noPort)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await claims()).toHaveLength(1);
  });

  it.each([
    ['of a process that has ended', JSON.stringify({ pid: 2 ** 22 + 1, birth: 'yesterday' })],
    ['whose pid now belongs to another process', JSON.stringify({ pid: process.pid, birth: 'yesterday' })],
    ['that makes no sense', '{"pid":'],
  ])('with a claim %s is free', async (_, content) => {
    await claim(content);
    const services = await start(noPort);
    await services.stop();
    expect(await claims()).toEqual([]);
  });

  it('is free again after a start that failed', async () => {
    await expect(start({ redisUrl: undefined, path: '/nowhere' })).rejects.toThrow('No Redis was found');
    expect(await claims()).toEqual([]);
    expect(await readdir(dataDir)).not.toContain('postgres.process.json');
  });
});

describe('servers that already exist', () => {
  it('are used as they are given and have no pid of ours', async () => {
    const services = await start(noPort);
    expect(services).toMatchObject({ ...noPort, postgresPid: null, redisPid: null });
  });
});

describe('a run that is killed', () => {
  interface Started {
    databaseUrl: string;
    postgresPid: number;
    redisPid: number;
  }

  async function startElsewhere() {
    const script = built('test/integration/services/services-process.ts');
    const run = execa(process.execPath, [script, dataDir], { reject: false, buffer: false });
    const [line] = await once(createInterface({ input: run.stdout }), 'line');
    return { run, started: JSON.parse(String(line)) as Started };
  }

  const gone = async (pid: number) => (await processBirth(pid)) === undefined;

  it('takes its servers with it', async () => {
    const { run, started } = await startElsewhere();
    expect(await gone(started.postgresPid)).toBe(false);
    run.kill('SIGKILL');
    await waitFor(() => gone(started.postgresPid), { label: 'the end of Postgres' });
    await waitFor(() => gone(started.redisPid), { label: 'the end of Redis' });
  });

  it.runIf(process.platform === 'linux')('with its leashes leaves servers that the next run ends first', async () => {
    const { run, started } = await startElsewhere();
    await keepNote(started.databaseUrl);
    for (const leash of await childrenNamed(run.pid ?? 0, 'bakehouse-leash')) process.kill(leash, 'SIGKILL');
    run.kill('SIGKILL');
    await run;
    expect(await gone(started.postgresPid)).toBe(false);
    const services = await start({ redisUrl: undefined });
    expect(await gone(started.postgresPid)).toBe(true);
    expect(await gone(started.redisPid)).toBe(true);
    expect(await readNote(services.databaseUrl)).toBe('kept');
  });

  async function childrenNamed(parent: number, name: string): Promise<number[]> {
    const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger);
    const matches = pids.map(async (pid) => {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      return command.includes(name) && status.includes(`PPid:\t${parent}\n`) ? pid : 0;
    });
    return (await Promise.all(matches)).filter((pid) => pid > 0);
  }
});
