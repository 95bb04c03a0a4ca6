import { SAMPLE_RATE } from '../ffmpeg/decode.ts';

/** A sound at its place on the sample clock. */
export interface Placed {
  /** First sample of the bed that it is heard in. */
  at: number;
  /** Its length in samples. */
  length: number;
  /** Mono samples at 48 kHz; asked for when the bed gets there, and dropped behind it. */
  load: () => Promise<Float32Array>;
}

/** One second of the bed at a time. */
const CHUNK_SAMPLES = SAMPLE_RATE;

/** What the end of the bed cuts off fades away instead of clicking. */
const CUT_FADE_SAMPLES = SAMPLE_RATE / 50;

/**
 * The sound bed of exactly `total` samples, as chunks of 32-bit float little-endian mono PCM at 48 kHz. It holds one
 * chunk and the sounds being heard, however long the bed is. The same sounds give the same bytes.
 */
export async function* mixBed(sounds: readonly Placed[], total: number): AsyncGenerator<Uint8Array> {
  const waiting = [...sounds].sort((a, b) => a.at - b.at);
  let active: { sound: Placed; samples: Float32Array }[] = [];
  for (let start = 0; start < total; start += CHUNK_SAMPLES) {
    const length = Math.min(CHUNK_SAMPLES, total - start);
    while (waiting[0] && waiting[0].at < start + length) {
      const sound = waiting.shift() as Placed;
      active.push({ sound, samples: await sound.load() });
    }
    const chunk = new Float32Array(length);
    for (const { sound, samples } of active) addTo(chunk, start, samples, sound.at, total);
    active = active.filter(({ sound, samples }) => sound.at + samples.length > start + length);
    yield new Uint8Array(chunk.buffer);
  }
}

function addTo(chunk: Float32Array, start: number, samples: Float32Array, at: number, total: number): void {
  const isCut = at + samples.length > total;
  const from = Math.max(0, at - start);
  const to = Math.min(chunk.length, at + samples.length - start);
  for (let i = from; i < to; i++) {
    const fade = isCut ? Math.min(1, (total - (start + i)) / CUT_FADE_SAMPLES) : 1;
    chunk[i] = (chunk[i] ?? 0) + (samples[start + i - at] ?? 0) * fade;
  }
}
