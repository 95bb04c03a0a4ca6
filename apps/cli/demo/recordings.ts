import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CliConfig } from '../../../lib/config/cli.ts';
import { runFfmpeg } from '../../../lib/ffmpeg/run.ts';
import { findFfmpeg } from '../../../lib/services/find-ffmpeg.ts';

/** How a stick figure moves: the parts swing by so many pixels, once per repetition. */
interface Movement {
  body: { x: number; y: number };
  arms: { x: number; y: number };
}

export interface Recording {
  name: string;
  seconds: number;
  movement: Movement;
  background: string;
}

/** Six invented exercises; the same every time, so that a second demo finds them baked. */
export const RECORDINGS: readonly Recording[] = [
  { name: 'Squat', seconds: 3, movement: { body: { x: 0, y: 110 }, arms: { x: 0, y: 110 } }, background: '0x1d3557' },
  {
    name: 'Heel raise',
    seconds: 2,
    movement: { body: { x: 0, y: -50 }, arms: { x: 0, y: -50 } },
    background: '0x2a6f5e',
  },
  {
    name: 'Side step',
    seconds: 3,
    movement: { body: { x: 220, y: 0 }, arms: { x: 220, y: 0 } },
    background: '0x6d3b47',
  },
  {
    name: 'Arm raise',
    seconds: 2,
    movement: { body: { x: 0, y: 0 }, arms: { x: 0, y: -160 } },
    background: '0x4a4e69',
  },
  {
    name: 'Hip hinge',
    seconds: 3,
    movement: { body: { x: 90, y: 40 }, arms: { x: 140, y: 120 } },
    background: '0x5c4d1f',
  },
  {
    name: 'Boxer punch',
    seconds: 2,
    movement: { body: { x: 20, y: 0 }, arms: { x: 200, y: -20 } },
    background: '0x3c3c3c',
  },
];

/** Tones in place of a voice: higher for higher counts, a chord's notes for the rest. Hz. */
const TONES: Record<string, number> = {
  start: 880,
  'last-rep': 988,
  done: 1047,
  rest: 440,
  'next-set': 659,
  'switch-side': 554,
  hold: 523,
  'countdown-3': 330,
  'countdown-2': 330,
  'countdown-1': 330,
  'count-1': 587,
  'count-2': 622,
  'count-3': 659,
};

export const CLIP_NAMES = Object.keys(TONES);

/** There and back in one repetition, starting and ending at rest. */
const swing = (pixels: number, seconds: number) => `${pixels}*(1-cos(2*PI*t/${seconds}))/2`;

function figureGraph({ movement, seconds, background }: Recording): string {
  const { body, arms } = movement;
  const part = (from: string, image: string, x: number, y: number, by: { x: number; y: number }, to: string) =>
    `[${from}][${image}]overlay=x='${x}+${swing(by.x, seconds)}':y='${y}+${swing(by.y, seconds)}':shortest=1[${to}]`;
  return [
    `color=c=${background}:s=1280x720:r=30:d=${seconds}[back]`,
    // Test source with a visible clock: proof that the right moments are shown.
    `testsrc=s=320x180:r=30:d=${seconds}[clock]`,
    '[back][clock]overlay=x=40:y=40[scene]',
    `color=c=0xf1c27d:s=90x90:r=30:d=${seconds}[head]`,
    `color=c=0xe63946:s=130x220:r=30:d=${seconds}[torso]`,
    `color=c=0xf1faee:s=300x44:r=30:d=${seconds}[arms]`,
    `color=c=0x457b9d:s=110x170:r=30:d=${seconds}[legs]`,
    '[scene][legs]overlay=x=585:y=500:shortest=1[s1]',
    part('s1', 'torso', 575, 290, body, 's2'),
    part('s2', 'head', 595, 190, body, 's3'),
    part('s3', 'arms', 490, 330, arms, 's4'),
  ].join(';');
}

const LIMITS = { silenceMs: 20_000, deadlineMs: 120_000 };

/** Makes a recording as an MP4 in `dir`; answers its path. */
export async function makeRecording(config: CliConfig, dir: string, recording: Recording): Promise<string> {
  return make(config, dir, `${recording.name.toLowerCase().replaceAll(' ', '-')}.mp4`, [
    ...['-filter_complex', figureGraph(recording), '-map', '[s4]', '-t', String(recording.seconds)],
    ...[
      '-c:v',
      'libx264',
      '-preset',
      'veryfast',
      '-crf',
      '20',
      '-pix_fmt',
      'yuv420p',
      '-threads',
      '1',
      '-flags:v',
      '+bitexact',
    ],
    ...['-fflags', '+bitexact', '-movflags', '+faststart'],
  ]);
}

/** Makes the tone for a cue as a WAV in `dir`; answers its path. */
export async function makeClip(config: CliConfig, dir: string, cue: string): Promise<string> {
  return make(config, dir, `${cue}.wav`, [
    ...['-f', 'lavfi', '-i', `sine=frequency=${TONES[cue] ?? 440}:sample_rate=48000:duration=0.35`],
    ...['-af', 'afade=t=in:d=0.02,afade=t=out:st=0.25:d=0.1', '-c:a', 'pcm_s16le', '-fflags', '+bitexact'],
  ]);
}

async function make(config: CliConfig, dir: string, name: string, args: string[]): Promise<string> {
  const { ffmpegPath } = findFfmpeg(config);
  await mkdir(dir, { recursive: true });
  const path = join(dir, name);
  const temporary = join(dir, `.${process.pid}-${name}`);
  try {
    await runFfmpeg({ ffmpegPath, args: [...args, temporary], ...LIMITS });
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  return path;
}
