import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRange } from '../../../apps/bunny-sim/http.ts';
import { planRungs, playlistSeconds } from '../../../apps/bunny-sim/ladder.ts';
import { readMp4Header } from '../../../apps/bunny-sim/mp4-header.ts';

describe('planRungs', () => {
  const plan = (displayWidth: number, displayHeight: number, copyable = true) =>
    planRungs({ displayWidth, displayHeight }, copyable).map(
      ({ name, width, height, copy }) => `${name} ${width}x${height}${copy ? ' copy' : ''}`,
    );

  it('keeps the source as the top rung and puts one low rung below it', () => {
    expect(plan(1280, 720)).toEqual(['360p 640x360', '720p 1280x720 copy']);
    expect(plan(640, 360)).toEqual(['240p 426x240', '360p 640x360 copy']);
    expect(plan(426, 240)).toEqual(['240p 426x240 copy']);
    expect(plan(1920, 1080, false)).toEqual(['360p 640x360', '1080p 1920x1080']);
  });

  it('goes by the short side, and down to the next rung where the source is between two', () => {
    expect(plan(1080, 1920)).toEqual(['360p 360x640', '1080p 1080x1920 copy']);
    expect(plan(1058, 794)).toEqual(['360p 480x360', '720p 960x720']);
  });

  it('never upscales: a small or odd source is its own only rung', () => {
    expect(plan(320, 180)).toEqual(['180p 320x180 copy']);
    expect(plan(161, 121, false)).toEqual(['121p 162x122']);
  });

  it('gives even sizes no larger than the source, give or take the rounding, for any source', () => {
    const side = fc.integer({ min: 2, max: 5000 });
    fc.assert(
      fc.property(side, side, (width, height) => {
        for (const rung of planRungs({ displayWidth: width, displayHeight: height }, false)) {
          expect(rung.width % 2 === 0 && rung.height % 2 === 0).toBe(true);
          expect(rung.width <= width + 1 && rung.height <= height + 1).toBe(true);
        }
      }),
    );
  });
});

describe('playlistSeconds', () => {
  it('adds up the segments', () => {
    expect(playlistSeconds('#EXTM3U\n#EXTINF:4.080000,\na.ts\n#EXTINF:1.5,\nb.ts\n')).toBeCloseTo(5.58);
    expect(playlistSeconds('')).toBe(0);
  });
});

describe('readRange', () => {
  it('never points outside of the file', () => {
    fc.assert(
      fc.property(
        fc.nat(50),
        fc.option(fc.nat(60), { nil: '' }),
        fc.option(fc.nat(60), { nil: '' }),
        (size, from, to) => {
          const range = readRange(`bytes=${from}-${to}`, size);
          if (typeof range !== 'object') return;
          expect(0 <= range.start && range.start <= range.end && range.end < size).toBe(true);
        },
      ),
    );
  });
});

describe('readMp4Header', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mp4-header-'));
  });
  afterAll(() => rm(dir, { recursive: true }));

  const box = (type: string, ...parts: Buffer[]) => {
    const data = Buffer.concat(parts);
    const head = Buffer.alloc(8);
    head.writeUInt32BE(data.length + 8);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, data]);
  };
  const mvhd = (timescale: number, duration: number) => {
    const data = Buffer.alloc(100);
    data.writeUInt32BE(timescale, 12);
    data.writeUInt32BE(duration, 16);
    return box('mvhd', data);
  };
  const mvhd64 = (timescale: number, duration: bigint) => {
    const data = Buffer.alloc(112);
    data[0] = 1;
    data.writeUInt32BE(timescale, 20);
    data.writeBigUInt64BE(duration, 24);
    return box('mvhd', data);
  };
  const trak = (width: number, height: number) => {
    const data = Buffer.alloc(84);
    data.writeUInt32BE(width * 65536, 76);
    data.writeUInt32BE(height * 65536, 80);
    return box('trak', box('tkhd', data));
  };
  const read = async (...boxes: Buffer[]) => {
    const file = join(dir, 'file.mp4');
    await writeFile(file, Buffer.concat(boxes));
    return readMp4Header(file);
  };
  const ftyp = box('ftyp', Buffer.from('isom'));

  it('reads length and size with the header in front or at the end, in 32 and 64 bits', async () => {
    const facts = { durationSeconds: 2.5, width: 640, height: 360, complete: true };
    const moov = box('moov', mvhd(1000, 2500), trak(0, 0), trak(640, 360), trak(64, 64));
    const mdat = box('mdat', Buffer.alloc(50));
    expect(await read(ftyp, moov, mdat)).toEqual(facts);
    expect(await read(ftyp, mdat, moov)).toEqual(facts);
    expect(await read(ftyp, box('moov', mvhd64(90_000, 225_000n), trak(640, 360)))).toEqual(facts);
  });

  it('sees that the media are cut off, and finds nothing where the header is', async () => {
    const moov = box('moov', mvhd(1000, 2500), trak(640, 360));
    const mdat = box('mdat', Buffer.alloc(50));
    expect(await read(ftyp, moov, mdat.subarray(0, 20))).toMatchObject({ durationSeconds: 2.5, complete: false });
    expect(await read(ftyp, mdat.subarray(0, 20))).toBeUndefined();
    expect(await read(ftyp, mdat, moov.subarray(0, -10))).toBeUndefined();
  });

  it('finds nothing in anything else, and never fails on it', async () => {
    expect(await read()).toBeUndefined();
    expect(await read(box('moov', mvhd(0, 2500), trak(1, 1)))).toBeUndefined();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        const header = await read(ftyp, Buffer.from(bytes));
        expect(header === undefined || Number.isFinite(header.durationSeconds)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});
