import { createHash, randomUUID } from 'node:crypto';
import { copyFile, mkdir, rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execa } from 'execa';
import { inject } from 'vitest';
import type { Toolchain } from '../../lib/ffmpeg/capabilities.ts';

/** The machine's real ffmpeg and ffprobe. */
export const testFfmpeg = (): Toolchain => inject('toolchain');

export interface ClipOptions {
  seconds?: number;
  size?: `${number}x${number}`;
  rate?: number;
  /** A sine tone along with the picture. */
  audio?: boolean;
}

/** Puts an H.264 MP4 with a moving test picture into `dir` and resolves to its path. */
export function makeClip(dir: string, options: ClipOptions = {}): Promise<string> {
  const { seconds = 2, size = '320x180', rate = 25, audio = false } = options;
  const video = ['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${rate}:duration=${seconds}`];
  const tone = audio ? ['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=48000:duration=${seconds}`] : [];
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-shortest'];
  return makeFixture(dir, 'clip.mp4', [...video, ...tone, ...encode]);
}

export interface ToneOptions {
  seconds?: number;
  frequencyHz?: number;
  /** The file's ending, by which ffmpeg chooses container and codec. */
  format?: 'wav' | 'm4a' | 'mp3' | 'flac' | 'ogg' | 'opus';
}

/** Puts a mono sine tone, 48 kHz, into `dir` and resolves to its path. */
export function makeTone(dir: string, options: ToneOptions = {}): Promise<string> {
  const { seconds = 1, frequencyHz = 440, format = 'wav' } = options;
  const input = `sine=frequency=${frequencyHz}:sample_rate=48000:duration=${seconds}`;
  return makeFixture(dir, `tone.${format}`, ['-f', 'lavfi', '-i', input]);
}

/** Encoded once in a run and then copied, since many files ask for the same fixture. */
async function makeFixture(dir: string, name: string, args: string[]): Promise<string> {
  const key = createHash('sha256').update(JSON.stringify(args)).digest('hex').slice(0, 16);
  const cache = join(inject('runDir'), 'fixtures');
  const cached = join(cache, `${key}-${name}`);
  if (!(await stat(cached).catch(() => undefined))) {
    await mkdir(cache, { recursive: true });
    const partial = join(cache, `${randomUUID()}-${name}`);
    const options = ['-hide_banner', '-loglevel', 'error', '-nostdin', '-threads', '1'];
    await execa(testFfmpeg().ffmpegPath, [...options, ...args, partial], { timeout: 60_000 });
    await rename(partial, cached);
  }
  const file = join(dir, basename(cached));
  await copyFile(cached, file);
  return file;
}
