import { describe, expect, it } from 'vitest';
import { parseNames, toolchainFingerprint } from '../../../lib/ffmpeg/capabilities.ts';
import { parseLoudness } from '../../../lib/ffmpeg/decode.ts';
import { parseProbe } from '../../../lib/ffmpeg/probe.ts';

const stream = (change: object) => ({
  ...{ index: 0, codec_type: 'video', codec_name: 'h264', width: 1280, height: 720, pix_fmt: 'yuv420p' },
  ...{ sample_aspect_ratio: '1:1', avg_frame_rate: '30000/1001', disposition: { attached_pic: 0 } },
  ...change,
});
const answer = (...streams: object[]) =>
  JSON.stringify({ format: { format_name: 'mov,mp4', duration: '12.5' }, streams });

describe('what ffprobe says', () => {
  it('is read for the first real picture, passing over cover art', () => {
    const cover = stream({ index: 0, codec_name: 'mjpeg', disposition: { attached_pic: 1 } });
    const facts = parseProbe(
      answer(cover, stream({ index: 3 }), { index: 1, codec_type: 'audio', codec_name: 'aac', channels: 2 }),
    );
    expect(facts).toMatchObject({ container: 'mov,mp4', claimedDurationMs: 12_500 });
    expect(facts.video).toMatchObject({ index: 3, displayWidth: 1280, displayHeight: 720, rotation: 0 });
    expect(facts.video?.averageRate).toBeCloseTo(29.97, 2);
    expect(facts.audio).toEqual([{ index: 1, codec: 'aac', channels: 2, sampleRate: 0 }]);
  });

  it('gives the size as shown: turned, and with oblong pixels stretched', () => {
    const turned = parseProbe(answer(stream({ sample_aspect_ratio: '3:2', side_data_list: [{ rotation: -90 }] })));
    expect(turned.video).toMatchObject({ rotation: 90, displayWidth: 720, displayHeight: 1920 });
    expect(parseProbe(answer(stream({ tags: { rotate: '270' } }))).video).toMatchObject({
      rotation: 270,
      displayWidth: 720,
    });
    expect(parseProbe(answer(stream({ sample_aspect_ratio: '0:1', avg_frame_rate: '0/0' }))).video).toMatchObject({
      ...{ sampleAspect: 1, averageRate: 0 },
    });
  });

  it('may lack nearly everything, but not be something else', () => {
    expect(parseProbe('{"format":{"format_name":"wav"}}')).toMatchObject({
      video: undefined,
      audio: [],
      claimedDurationMs: undefined,
    });
    for (const text of ['', '[]', '{"streams":[]}']) expect(() => parseProbe(text)).toThrow();
  });
});

describe('the summary of the loudness filter', () => {
  const summary = (lufs: string, peak: string) =>
    `[Parsed_ebur128_0 @ 0x1] Summary:\n\n  Integrated loudness:\n    I:         ${lufs} LUFS\n    Threshold: -26.0 LUFS\n\n  True peak:\n    Peak:       ${peak} dBFS\n`;

  it('is read from the last one in the log', () => {
    expect(parseLoudness(`${summary('-10.0', '0.1')}noise\n${summary('-16.2', '-1.5')}`)).toEqual({
      lufs: -16.2,
      truePeakDb: -1.5,
    });
  });

  it('means silence at its floor', () => {
    const silence = { lufs: Number.NEGATIVE_INFINITY, truePeakDb: Number.NEGATIVE_INFINITY };
    expect(parseLoudness(summary('-70.0', '-inf'))).toEqual(silence);
    expect(parseLoudness(summary('nan', '-inf'))).toEqual(silence);
  });

  it('is a failure where it is missing', () => {
    expect(() => parseLoudness('nothing')).toThrow();
  });
});

describe('the lists of an ffmpeg', () => {
  it('name encoders, filters and demuxers, several in one line where they share it', () => {
    const names = parseNames(
      [
        'Encoders:',
        ' V..... = Video',
        ' ------',
        ' V....D libx264              libx264 H.264 / AVC',
        ' T.C trim              V->V       Pick one continuous section',
        ' D  matroska,webm   Matroska / WebM',
        '  E mp4             MP4 (MPEG-4 Part 14)',
      ].join('\n'),
    );
    for (const name of ['libx264', 'trim', 'matroska', 'webm', 'mp4']) expect(names).toContain(name);
  });

  it('give a fingerprint that changes with each part', () => {
    const parts = { version: '7.0', configuration: '--enable-gpl', x264: 'core 164' };
    const all = [parts, { ...parts, version: '7.1' }, { ...parts, configuration: '' }, { ...parts, x264: 'core 165' }];
    expect(new Set(all.map(toolchainFingerprint)).size).toBe(4);
  });
});
