import { type FileHandle, open } from 'node:fs/promises';

export interface Mp4Header {
  durationSeconds: number;
  /** Of the largest track, as shown. */
  width: number;
  height: number;
  /** False where the file ends before its last box does. */
  complete: boolean;
}

/** Headers of an hour of video are some megabytes at most. */
const LARGEST_MOOV = 64 * 1024 * 1024;

interface Box {
  type: string;
  /** Offsets of the contents; `end` as the box claims. */
  start: number;
  end: number;
}

/** Reads length and size from an MP4's `moov` (ISO/IEC 14496-12); `undefined` where there is none. Decodes nothing. */
export async function readMp4Header(file: string): Promise<Mp4Header | undefined> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    let complete = true;
    let moov: Box | undefined;
    for (let at = 0; at + 8 <= size; ) {
      const box = readBox(await read(handle, at, 16), at, size);
      if (!box) return undefined;
      if (box.type === 'moov') moov = box;
      if (box.end > size) complete = false;
      at = box.end;
    }
    if (!moov || moov.end > size || moov.end - moov.start > LARGEST_MOOV) return undefined;
    return parseMoov(await read(handle, moov.start, moov.end - moov.start), complete);
  } finally {
    await handle.close();
  }
}

async function read(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

/** The box whose head starts `head`; sizes 0 ("to the end") and 1 (64 bits follow) as the standard has them. */
function readBox(head: Buffer, at: number, limit: number): Box | undefined {
  if (head.length < 8) return undefined;
  const type = head.toString('latin1', 4, 8);
  const short = head.readUInt32BE(0);
  if (!/^[\x20-\x7e\xa9]{4}$/.test(type)) return undefined;
  if (short === 0) return { type, start: at + 8, end: limit };
  if (short !== 1) return short < 8 ? undefined : { type, start: at + 8, end: at + short };
  if (head.length < 16) return undefined;
  const long = Number(head.readBigUInt64BE(8));
  return long < 16 ? undefined : { type, start: at + 16, end: at + long };
}

function* boxesIn(data: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = 0; at + 8 <= data.length; ) {
    const box = readBox(data.subarray(at, at + 16), at, data.length);
    if (!box) return;
    yield { type: box.type, data: data.subarray(box.start, box.end) };
    at = box.end;
  }
}

function parseMoov(moov: Buffer, complete: boolean): Mp4Header | undefined {
  let durationSeconds: number | undefined;
  let width = 0;
  let height = 0;
  for (const box of boxesIn(moov)) {
    if (box.type === 'mvhd') durationSeconds = movieSeconds(box.data);
    if (box.type !== 'trak') continue;
    for (const inner of boxesIn(box.data)) {
      // Width and height are the last two fields of tkhd, as 16.16 fixed point.
      if (inner.type !== 'tkhd' || inner.data.length < 84) continue;
      const end = inner.data.length;
      const size = { width: inner.data.readUInt32BE(end - 8) >>> 16, height: inner.data.readUInt32BE(end - 4) >>> 16 };
      if (size.width * size.height > width * height) ({ width, height } = size);
    }
  }
  return durationSeconds === undefined ? undefined : { durationSeconds, width, height, complete };
}

/** `mvhd`: version 0 has 32-bit times, version 1 64-bit ones. */
function movieSeconds(mvhd: Buffer): number | undefined {
  if (mvhd.length < 32) return undefined;
  const [timescale, duration] =
    mvhd[0] === 1
      ? [mvhd.readUInt32BE(20), Number(mvhd.readBigUInt64BE(24))]
      : [mvhd.readUInt32BE(12), mvhd.readUInt32BE(16)];
  return timescale > 0 ? duration / timescale : undefined;
}
