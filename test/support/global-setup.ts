import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../lib/db/migrate.ts';
import { checkToolchain, type Toolchain } from '../../lib/ffmpeg/capabilities.ts';
import { findFfmpeg } from '../../lib/services/find-ffmpeg.ts';
import { removeServiceData, startServices } from '../../lib/services/start-services.ts';
import { buildInto } from './build.ts';
import { silentLog } from './log.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A superuser's URL of the run's own Postgres. */
    databaseAdminUrl: string;
    /** A migrated database there, which nobody connects to, to clone. */
    databaseTemplate: string;
    /** The run's own Redis, shared by all files: use it under a prefix of your own. */
    redisUrl: string;
    /** The machine's ffmpeg, looked at once for all: the look starts it seven times. */
    toolchain: Toolchain;
    /** Where the project is built, to start its programs from; see `built`. */
    buildDir: string;
    /** Removed with everything in it when the run ends. */
    runDir: string;
  }
}

const TEMPLATE = 'bakehouse_template';

/**
 * One Postgres and one Redis for the whole run, always its own: DATABASE_URL and REDIS_URL of the environment may be
 * somebody's real data. Private ports and a folder of its own let two runs go on side by side.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runDir = await mkdtemp(join(tmpdir(), 'bakehouse-test-'));
  // mkdtemp makes it 0700. Where we are root, Postgres runs as another account and must pass through.
  await chmod(runDir, 0o711);
  const dataDir = join(runDir, 'services');
  const buildDir = join(runDir, 'project');
  const removeAll = async () => {
    await removeServiceData(dataDir);
    await rm(runDir, { recursive: true, force: true });
  };
  try {
    const services = await startServices({ dataDir, path: process.env.PATH, durable: false, log: silentLog });
    const tearDown = async () => {
      await services.stop();
      await removeAll();
    };
    try {
      await Promise.all([buildInto(buildDir), makeTemplate(services.databaseUrl)]);
    } catch (error) {
      await services.stop();
      throw error;
    }
    project.provide('databaseAdminUrl', services.databaseUrl);
    project.provide('databaseTemplate', TEMPLATE);
    project.provide('redisUrl', services.redisUrl);
    project.provide('runDir', runDir);
    project.provide('buildDir', buildDir);
    const { FFMPEG_PATH, FFPROBE_PATH, PATH } = process.env;
    project.provide('toolchain', await checkToolchain(findFfmpeg({ FFMPEG_PATH, FFPROBE_PATH, PATH })));
    return tearDown;
  } catch (error) {
    await removeAll();
    throw error;
  }
}

async function makeTemplate(adminUrl: string): Promise<void> {
  const sql = postgres(adminUrl, { max: 1 });
  try {
    await sql`create database ${sql(TEMPLATE)}`;
    const url = new URL(adminUrl);
    url.pathname = `/${TEMPLATE}`;
    await migrate(url.href);
    // A database with a single connection cannot be cloned.
    await sql`alter database ${sql(TEMPLATE)} with allow_connections false is_template true`;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
