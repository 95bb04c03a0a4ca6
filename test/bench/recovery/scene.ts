import { openAsBlob } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { execa } from 'execa';
import { z } from 'zod';
import { startApp } from '../../../apps/cli/stack/app-process.ts';
import type { StackDescription } from '../../../apps/cli/stack/stack.ts';
import { type Db, openDatabase } from '../../../lib/db/client.ts';
import { rows } from '../../../lib/db/rows.ts';
import { findFfmpeg } from '../../../lib/services/find-ffmpeg.ts';
import { removeServiceData } from '../../../lib/services/start-services.ts';
import { silentLog } from '../../support/log.ts';
import { startUp } from '../../support/stack.ts';

export interface Scene {
  all: StackDescription;
  db: Db;
  /** An exercise with so many seconds of film. */
  anExercise(film: { seconds: number; size: string }): Promise<string>;
  /** Publishes a programme of one exercise in these doses; answers the ids of its renders. */
  publish(exerciseId: string, doses: readonly object[]): Promise<string[]>;
  stop(): Promise<void>;
}

/**
 * Starts everything as `bakehouse up` does: each app and server a process of its own, real ffmpeg, Bunny's simulator;
 * and a second worker beside its one. Whatever dies is started again.
 */
export async function openScene(env: Record<string, string>): Promise<Scene> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bakehouse-bench-'));
  // mkdtemp makes it 0700. Where we are root, Postgres runs as another account and must pass through.
  await chmod(dataDir, 0o711);
  const removeAll = async () => {
    await removeServiceData(dataDir);
    await rm(dataDir, { recursive: true, force: true });
  };
  // Servers named in the environment may be somebody's real ones; here servers are killed and flushed.
  const own = { DATABASE_URL: undefined, REDIS_URL: undefined } as unknown as Record<string, string>;
  const stack = await startUp(dataDir, { ...own, ...env }).catch(async (error: unknown) => {
    await removeAll();
    throw error;
  });
  const { all } = stack;
  const second = await startApp({
    app: 'worker',
    env: {
      ...env,
      PATH: process.env.PATH,
      LOG_LEVEL: 'warn',
      DATABASE_URL: all.databaseUrl,
      REDIS_URL: all.redisUrl,
      MEDIA_URL: all.media.url,
      MEDIA_TOKEN: all.media.token,
    },
    logDir: join(dataDir, 'logs'),
    log: silentLog,
  });
  const database = openDatabase(all.databaseUrl, { max: 4, appName: 'bench-recovery' });
  const { db } = database;

  const call = async (token: string, method: string, path: string, body?: unknown) => {
    const isFile = body instanceof Blob;
    const response = await fetch(`${all.edge.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': isFile ? 'application/octet-stream' : 'application/json',
      },
      ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return z.looseObject({ id: z.string().default('') }).parse(JSON.parse(text));
  };

  return {
    all,
    db,
    anExercise: async (film) => {
      const { id } = await call(all.tokens.manager, 'POST', '/v1/exercises', { names: { en: 'Squat' } });
      const file = await openAsBlob(await makeFilm(dataDir, film));
      await call(all.tokens.manager, 'PUT', `/v1/exercises/${id}/source`, file);
      return id;
    },
    publish: async (exerciseId, doses) => {
      const { id } = await call(all.tokens.specialist, 'POST', '/v1/programs', {
        title: 'Knee',
        language: 'en',
        sessions: [{ title: 'One', items: doses.map((dose) => ({ exerciseId, dose })) }],
      });
      await call(all.tokens.specialist, 'POST', `/v1/programs/${id}/publish`);
      const linked = await rows<{ id: string }>(
        db,
        sql`select i.render_id as id from session_items i join sessions s on s.id = i.session_id where s.program_id = ${id}`,
      );
      return linked.map((item) => item.id);
    },
    stop: async () => {
      await database.close();
      await second.stop(10_000);
      await stack.stop();
      await removeAll();
    },
  };
}

async function makeFilm(dir: string, { seconds, size }: { seconds: number; size: string }): Promise<string> {
  const { FFMPEG_PATH, FFPROBE_PATH, PATH } = process.env;
  const { ffmpegPath } = findFfmpeg({ FFMPEG_PATH, FFPROBE_PATH, PATH });
  const file = join(dir, `film-${size}-${seconds}.mp4`);
  const picture = ['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=25:duration=${seconds}`];
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];
  await execa(ffmpegPath, ['-loglevel', 'error', '-nostdin', '-y', ...picture, ...encode, file], { timeout: 60_000 });
  return file;
}
