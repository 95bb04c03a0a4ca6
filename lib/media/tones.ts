import { SAMPLE_RATE } from '../ffmpeg/decode.ts';

/** A run of beeps: how high, how long, and the pause behind each. */
interface Beep {
  hertz: number;
  ms: number;
  pauseMs?: number;
}

/** Low for rest, rising for what begins, falling for what ends; the end is longer than anything else. */
const BEEPS: Record<string, Beep[]> = {
  start: [{ hertz: 880, ms: 350 }],
  'next-set': [{ hertz: 880, ms: 350 }],
  hold: [
    { hertz: 990, ms: 70, pauseMs: 50 },
    { hertz: 990, ms: 70 },
  ],
  rest: [{ hertz: 330, ms: 450 }],
  'switch-side': [
    { hertz: 523, ms: 150, pauseMs: 50 },
    { hertz: 784, ms: 150, pauseMs: 50 },
    { hertz: 523, ms: 150 },
  ],
  'last-rep': [
    { hertz: 660, ms: 80, pauseMs: 60 },
    { hertz: 880, ms: 80 },
  ],
  done: [
    { hertz: 784, ms: 180, pauseMs: 40 },
    { hertz: 659, ms: 180, pauseMs: 40 },
    { hertz: 523, ms: 600 },
  ],
};
const COUNT: Beep[] = [{ hertz: 660, ms: 90 }];
const COUNTDOWN: Beep[] = [{ hertz: 440, ms: 120 }];

/** Loud enough to be heard over a room; the bed is brought to its loudness as a whole. */
const AMPLITUDE = 0.3;
/** Rise and fall, so that no click is heard. */
const RAMP_MS = 6;

const beepsOf = (name: string): Beep[] => BEEPS[name] ?? (name.startsWith('countdown-') ? COUNTDOWN : COUNT);

/** The tone of a cue: mono, 48 kHz. The same name always gives the same samples. */
export function tone(name: string): Float32Array {
  const beeps = beepsOf(name);
  const total = beeps.reduce((sum, beep) => sum + samplesOf(beep.ms) + samplesOf(beep.pauseMs ?? 0), 0);
  const samples = new Float32Array(total);
  const ramp = samplesOf(RAMP_MS);
  let at = 0;
  for (const { hertz, ms, pauseMs } of beeps) {
    const length = samplesOf(ms);
    for (let i = 0; i < length; i++) {
      const envelope = Math.min(1, i / ramp, (length - 1 - i) / ramp);
      samples[at + i] = AMPLITUDE * envelope * Math.sin((2 * Math.PI * hertz * i) / SAMPLE_RATE);
    }
    at += length + samplesOf(pauseMs ?? 0);
  }
  return samples;
}

const samplesOf = (ms: number) => Math.round((ms * SAMPLE_RATE) / 1000);
