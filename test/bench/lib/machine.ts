import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { execa } from 'execa';
import { findFfmpeg } from '../../../lib/services/find-ffmpeg.ts';
import { embeddedPostgresVersion } from '../../../lib/services/postgres.ts';
import { redisServerVersion } from '../../../lib/services/redis.ts';

export interface Machine {
  cpu: string;
  cores: number;
  memoryGb: number;
  os: string;
  node: string;
  postgres: string;
  redis: string;
  ffmpeg: string;
  /** Of the last minute, when the bench began: what else the machine was doing. */
  load: number;
}

/** What the figures of a run hold for. */
export async function describeMachine(): Promise<Machine> {
  const { FFMPEG_PATH, FFPROBE_PATH, PATH } = process.env;
  const { ffmpegPath } = findFfmpeg({ FFMPEG_PATH, FFPROBE_PATH, PATH });
  const [postgres, redis, ffmpeg] = await Promise.all([
    embeddedPostgresVersion(),
    redisServerVersion(PATH),
    execa(ffmpegPath, ['-version']),
  ]);
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    os: `${type()} ${release()}`,
    node: process.version,
    postgres: firstNumber(postgres.version),
    redis: firstNumber(redis.version),
    ffmpeg: firstNumber(ffmpeg.stdout),
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

const firstNumber = (text: string) => /\d+(\.\d+)*/.exec(text)?.[0] ?? text;

export const machineLine = (m: Machine) =>
  `${m.cpu}, ${m.cores} cores, ${m.memoryGb} GB, ${m.os}; Node ${m.node}, Postgres ${m.postgres}, Redis ${m.redis}, ffmpeg ${m.ffmpeg}; load ${m.load} at start`;
