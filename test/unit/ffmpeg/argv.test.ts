import { describe, expect, it } from 'vitest';
import { concatInputArgs, concatLine, fileUrl, inputArgs, UPLOAD_FORMATS } from '../../../lib/ffmpeg/argv.ts';

describe('arguments for ffmpeg', () => {
  it('confine an input to one file of a known kind, before it is named', () => {
    const args = inputArgs('/data/in.mp4');
    expect(args.indexOf('-i')).toBe(args.length - 2);
    expect(args.at(-1)).toBe('file:/data/in.mp4');
    expect(args.slice(0, 2)).toEqual(['-protocol_whitelist', 'file']);
    expect(args[args.indexOf('-format_whitelist') + 1]?.split(',')).toContain('mov');
  });

  it('never allow a demuxer that opens further files', () => {
    for (const name of [
      'hls',
      'concat',
      'concatf',
      'dash',
      'sdp',
      'rtsp',
      'rtp',
      'image2',
      'imf',
      'lavfi',
      'applehttp',
    ]) {
      expect(UPLOAD_FORMATS as readonly string[]).not.toContain(name);
    }
    expect(concatInputArgs('/job/list.txt')).toContain('concat,mov,wav');
  });

  it('take absolute paths only, so that no name is an option or a protocol', () => {
    for (const path of ['in.mp4', '-i', 'concat:a', 'http://host/a', '/a\0b']) expect(() => fileUrl(path)).toThrow();
  });

  it('quote a name in a concat list as that demuxer reads it', () => {
    expect(concatLine("/tmp/it's.mp4")).toBe("file 'file:/tmp/it'\\''s.mp4'\n");
  });
});
