import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { AppError } from '../errors.ts';

export interface TrackFacts {
  /** Media handler: `vide` or `soun`. */
  handler: string;
  timescale: number;
  samples: number;
  /** Sum of all sample durations, in ticks of the timescale. */
  duration: number;
  /** Every distinct duration of a sample; one alone means a constant rate and decoding times that always grow. */
  deltas: number[];
  /** True where showing order differs from decoding order. */
  reordered: boolean;
  /** SHA-256 of what a decoder is set up with: codec, size, decoder configuration. Equal ones may follow each other. */
  description: string;
}

export interface Mp4Facts {
  /** The index stands before the media, so that playing starts with the first bytes. */
  fastStart: boolean;
  tracks: TrackFacts[];
}

/** An index of an hour's video is some megabytes; nothing this program makes comes near this. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024;

/**
 * Reads the index of an MP4 that this program made (ISO/IEC 14496-12): exact counts and times without starting a
 * process. Throws `verify_failed` for anything that is not a plain, unfragmented MP4.
 */
export async function readMp4(path: string): Promise<Mp4Facts> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw new AppError('verify_failed', { detail: `cannot open ${path}`, cause: error });
  });
  try {
    const { size } = await file.stat();
    let moov: Buffer | undefined;
    let moovAt = -1;
    let mediaAt = -1;
    for (let at = 0; at + 8 <= size; ) {
      const box = await topLevelBox(file, at, size);
      if (box.type === 'mdat') mediaAt = at;
      if (box.type === 'moov') {
        moovAt = at;
        moov = await readExactly(file, at + box.header, box.length - box.header);
      }
      at += box.length;
    }
    if (!moov) throw broken('no index');
    return {
      fastStart: moovAt < mediaAt,
      tracks: children(moov)
        .filter(isNamed('trak'))
        .map((trak) => track(trak.body)),
    };
  } finally {
    await file.close();
  }
}

interface Box {
  type: string;
  body: Buffer;
}

async function topLevelBox(file: FileHandle, at: number, size: number) {
  const head = await readExactly(file, at, Math.min(16, size - at));
  let length = head.readUInt32BE(0);
  let header = 8;
  if (length === 1 && head.length === 16) {
    length = Number(head.readBigUInt64BE(8));
    header = 16;
  }
  if (length === 0) length = size - at;
  if (length < header || at + length > size) throw broken('a box is cut off');
  return { type: head.toString('latin1', 4, 8), length, header };
}

async function readExactly(file: FileHandle, at: number, length: number): Promise<Buffer> {
  if (length > MAX_INDEX_BYTES) throw broken('the index is too large');
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, at);
  if (bytesRead !== length) throw broken('the file is cut off');
  return buffer;
}

function children(body: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= body.length; ) {
    const length = body.readUInt32BE(at);
    if (length < 8 || at + length > body.length) throw broken('a box of the index is cut off');
    boxes.push({ type: body.toString('latin1', at + 4, at + 8), body: body.subarray(at + 8, at + length) });
    at += length;
  }
  return boxes;
}

const isNamed = (type: string) => (box: Box) => box.type === type;

function descend(body: Buffer, ...path: string[]): Buffer {
  let current = body;
  for (const type of path) {
    const found = children(current).find(isNamed(type));
    if (!found) throw broken(`no ${type} in the index`);
    current = found.body;
  }
  return current;
}

function track(trak: Buffer): TrackFacts {
  const mdia = descend(trak, 'mdia');
  const mdhd = descend(mdia, 'mdhd');
  const stbl = descend(mdia, 'minf', 'stbl');
  const stts = descend(stbl, 'stts');
  const deltas = new Set<number>();
  let samples = 0;
  let duration = 0;
  const entries = stts.readUInt32BE(4);
  for (let entry = 0; entry < entries; entry++) {
    const count = stts.readUInt32BE(8 + entry * 8);
    const delta = stts.readUInt32BE(12 + entry * 8);
    deltas.add(delta);
    samples += count;
    duration += count * delta;
  }
  return {
    handler: descend(mdia, 'hdlr').toString('latin1', 8, 12),
    timescale: mdhd.readUInt32BE(mdhd[0] === 1 ? 20 : 12),
    samples,
    duration,
    deltas: [...deltas],
    reordered: children(stbl).some(isNamed('ctts')),
    description: description(descend(stbl, 'stsd')),
  };
}

/** Fixed part of a visual sample entry (ISO/IEC 14496-12 12.1.3), after its box header; boxes follow. */
const VISUAL_ENTRY_BYTES = 78;

function description(stsd: Buffer): string {
  const hash = createHash('sha256');
  for (const entry of children(stsd.subarray(8))) {
    hash.update(entry.type).update(entry.body.subarray(0, VISUAL_ENTRY_BYTES));
    if (entry.type !== 'avc1') continue;
    // `btrt` tells the bit rate of this very file.
    for (const box of children(entry.body.subarray(VISUAL_ENTRY_BYTES))) {
      if (box.type !== 'btrt') hash.update(box.type).update(box.body);
    }
  }
  return hash.digest('hex');
}

const broken = (detail: string) => new AppError('verify_failed', { detail: `mp4: ${detail}` });
