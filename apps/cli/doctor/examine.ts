import { mkdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { inspectRedis } from '../../../lib/cache/inspect.ts';
import type { CliConfig } from '../../../lib/config/cli.ts';
import { inspectPostgres } from '../../../lib/db/inspect.ts';
import { AppError } from '../../../lib/errors.ts';
import { checkToolchain } from '../../../lib/ffmpeg/capabilities.ts';
import { findFfmpeg } from '../../../lib/services/find-ffmpeg.ts';
import { embeddedPostgresVersion } from '../../../lib/services/postgres.ts';
import { redisServerVersion } from '../../../lib/services/redis.ts';
import { redisFromSetup } from '../../../lib/services/setup-file.ts';

export interface Finding {
  ok: boolean;
  what: string;
  found: string;
  /** What mends it, where something is wrong. */
  fix?: string;
}

const OLDEST_NODE = [20, 19];
/** NULLS NOT DISTINCT, which the schema uses, came with 15. */
const OLDEST_POSTGRES = 150_000;
const LEAST_FREE_BYTES = 2e9;

function why(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const detail = error instanceof AppError ? (error.detail ?? '') : '';
  return error.message.includes(detail) ? error.message : `${error.message} ${detail}`;
}

/** Looks at everything that `up` needs on this machine. Never throws: what fails is a finding. */
export async function examine(config: CliConfig): Promise<Finding[]> {
  const parts: [string, (config: CliConfig) => Promise<Omit<Finding, 'what'>>, string][] = [
    ['Node', node, 'Install Node 20.19 or newer.'],
    ['ffmpeg', ffmpeg, 'Run node scripts/setup.mjs, or set FFMPEG_PATH and FFPROBE_PATH to a full build.'],
    ['Postgres', postgres, 'Check DATABASE_URL, or unset it to use the embedded one.'],
    ['Redis', redis, 'Run node scripts/setup.mjs, or set REDIS_URL.'],
    ['data folder', dataFolder, 'Set BAKEHOUSE_DATA_DIR to a folder that you can write to, with room.'],
  ];
  return Promise.all(
    parts.map(async ([what, look, fix]) => {
      try {
        return { what, ...(await look(config)) };
      } catch (error) {
        return { what, ok: false, found: why(error), fix };
      }
    }),
  );
}

async function node(): Promise<Omit<Finding, 'what'>> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = OLDEST_NODE;
  const ok = major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  return {
    ok,
    found: `${process.versions.node} at ${process.execPath}`,
    ...(!ok && { fix: 'Install Node 20.19 or newer.' }),
  };
}

async function ffmpeg(config: CliConfig): Promise<Omit<Finding, 'what'>> {
  const tools = findFfmpeg(config);
  const { version, x264, fingerprint } = await checkToolchain(tools);
  return {
    ok: true,
    found: `${version}, x264 ${x264}, has all that is needed; ${tools.ffmpegPath} (${tools.origin}), ${tools.ffprobePath}; toolchain ${fingerprint.slice(0, 12)}`,
  };
}

async function postgres({ DATABASE_URL }: CliConfig): Promise<Omit<Finding, 'what'>> {
  if (!DATABASE_URL) {
    const { path, version } = await embeddedPostgresVersion();
    return { ok: true, found: `embedded: ${version}; ${path}` };
  }
  const { version, versionNumber, migrated } = await inspectPostgres(DATABASE_URL);
  if (versionNumber < OLDEST_POSTGRES)
    return { ok: false, found: `${version} at DATABASE_URL`, fix: 'Use Postgres 15 or newer.' };
  if (!migrated)
    return { ok: false, found: `${version} at DATABASE_URL, without our schema`, fix: 'Run bakehouse migrate.' };
  return { ok: true, found: `${version} at DATABASE_URL, schema present` };
}

async function redis({ REDIS_URL, PATH }: CliConfig): Promise<Omit<Finding, 'what'>> {
  const url = REDIS_URL ?? (await redisFromSetup());
  if (!url) {
    const { path, version } = await redisServerVersion(PATH);
    return { ok: true, found: `own server: ${version}; ${path}` };
  }
  const { version, maxmemoryPolicy } = await inspectRedis(url);
  const ok = maxmemoryPolicy === 'noeviction';
  return {
    ok,
    found: `${version} at ${new URL(url).host}, maxmemory-policy ${maxmemoryPolicy}`,
    ...(!ok && { fix: 'Set maxmemory-policy to noeviction: Redis would drop jobs and locks to make room.' }),
  };
}

async function dataFolder({ BAKEHOUSE_DATA_DIR }: CliConfig): Promise<Omit<Finding, 'what'>> {
  const folder = resolve(BAKEHOUSE_DATA_DIR);
  await mkdir(folder, { recursive: true });
  const probe = join(folder, `.doctor-${process.pid}`);
  await writeFile(probe, '');
  await rm(probe);
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const ok = free >= LEAST_FREE_BYTES;
  return {
    ok,
    found: `${folder}, ${(free / 1e9).toFixed(1)} GB free`,
    ...(!ok && { fix: 'Make room: at least 2 GB.' }),
  };
}
