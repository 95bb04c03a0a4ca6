import { randomUUID } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { issueToken } from '../../lib/auth/tokens.ts';
import { findFfmpeg } from '../../lib/services/find-ffmpeg.ts';
import type { Edges } from './edges.ts';
import { EXERCISES, ORGS, PLATFORM_EXERCISES, SPECIALISTS } from './load.ts';

export interface Clinic {
  /** The exercises of the plan, by number. */
  exerciseIds: string[];
  /** A token for each specialist of the plan, by number. */
  tokens: string[];
}

const TTL_SECONDS = 24 * 3600;

/** Brings the platform's and the clinics' exercises in through the API, each with a second of film. */
export async function seedClinic(edges: Edges, options: { jwtSecret: string; dir: string }): Promise<Clinic> {
  const { jwtSecret: secret, dir } = options;
  const orgIds = ORGS.map(() => randomUUID());
  const superadmin = await issueToken({ secret, sub: 'root', role: 'superadmin', ttlSeconds: TTL_SECONDS });
  const managers = await Promise.all(
    orgIds.map((org, index) =>
      issueToken({ secret, sub: `manager-${index}`, role: 'manager', org, ttlSeconds: TTL_SECONDS }),
    ),
  );
  await mkdir(dir, { recursive: true });
  const exerciseIds: string[] = [];
  for (let index = 0; index < EXERCISES; index++) {
    const token = (index < PLATFORM_EXERCISES ? superadmin : managers[index - PLATFORM_EXERCISES]) ?? superadmin;
    const names = { en: `Exercise ${index}` };
    const made = await edges.ask(token, (api) => api.POST('/v1/exercises', { body: { names } }));
    const params = { path: { id: made.body.id } };
    const film = await openAsBlob(await makeFilm(join(dir, `film-${index}.mp4`), index));
    await edges.ask(token, (api) => api.PUT('/v1/exercises/{id}/source', { params, body: film }));
    exerciseIds.push(made.body.id);
  }
  const tokens = await Promise.all(
    SPECIALISTS.map(({ name, org }) =>
      issueToken({ secret, sub: name, role: 'specialist', org: orgIds[org], ttlSeconds: TTL_SECONDS }),
    ),
  );
  return { exerciseIds, tokens };
}

async function makeFilm(file: string, index: number): Promise<string> {
  const { FFMPEG_PATH, FFPROBE_PATH, PATH } = process.env;
  const { ffmpegPath } = findFfmpeg({ FFMPEG_PATH, FFPROBE_PATH, PATH });
  const picture = `testsrc2=size=320x180:rate=25:duration=1,hue=h=${index * 60}`;
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-threads', '1'];
  await execa(ffmpegPath, ['-loglevel', 'error', '-nostdin', '-f', 'lavfi', '-i', picture, ...encode, file]);
  return file;
}
