import { describe, expect, it } from 'vitest';
import type { VideoMeasure } from '../../../lib/ffmpeg/decode.ts';
import { parseProbe } from '../../../lib/ffmpeg/probe.ts';
import { judgeSource } from '../../../lib/media/validate.ts';

const probed = (claimed: string, change: object = {}) =>
  parseProbe(
    JSON.stringify({
      format: { format_name: 'mov,mp4', duration: claimed },
      streams: [{ index: 0, codec_type: 'video', codec_name: 'h264', width: 1920, height: 1080, ...change }],
    }),
  );
const measure = (change: Partial<VideoMeasure> = {}): VideoMeasure => ({
  ...{ frames: 250, durationMs: 10_000, firstMs: 0, timesMs: [], longestGapMs: 40, shortestGapMs: 40 },
  ...{ errorLines: 0, exitCode: 0, stderrTail: '' },
  ...change,
});

function judge(claimed: string, change: Partial<VideoMeasure> = {}, stream: object = {}) {
  const facts = probed(claimed, stream);
  if (!facts.video) throw new Error('no video');
  const { errors, warnings } = judgeSource(facts, facts.video, measure(change));
  return {
    errors: errors.map(({ code }) => code),
    warnings: warnings.map(({ code }) => code),
    sentences: errors.map(({ sentence }) => sentence),
  };
}

describe('a measured source', () => {
  it('that decodes cleanly raises nothing', () => {
    expect(judge('10')).toEqual({ errors: [], warnings: [], sentences: [] });
  });

  it('is believed over its header: a false claim of 38 hours is no error where all decodes cleanly', () => {
    expect(judge('143165').errors).toEqual([]);
  });

  it('is cut off where far less decodes than is claimed, amid complaints', () => {
    const cut = judge('231', { durationMs: 20_000, frames: 500, errorLines: 3 });
    expect(cut.errors).toEqual(['source_undecodable']);
    expect(cut.sentences[0]).toBe('The file is cut off: only 20.0 of 231.0 seconds can be decoded.');
  });

  it('is refused where nothing decodes, where it is too short, and where it is too long', () => {
    expect(judge('10', { frames: 0, durationMs: 0, exitCode: 1 }).errors).toEqual(['source_undecodable']);
    expect(judge('10', { frames: 5, durationMs: 200 }).errors).toEqual(['source_too_short']);
    expect(judge('700', { frames: 15_000, durationMs: 600_500 }).errors).toEqual(['source_too_long']);
    expect(judge('10', { frames: 0, durationMs: 0 }, { codec_tag_string: 'encv' }).sentences[0]).toMatch(/encrypted/);
  });

  it('is warned of in what will show', () => {
    const warned = (change: Partial<VideoMeasure>, stream: object = {}) => judge('10', change, stream).warnings;
    expect(warned({ shortestGapMs: 16, longestGapMs: 100 })).toEqual(['variable_frame_rate']);
    expect(warned({ frames: 100 })).toEqual(['low_frame_rate']);
    expect(warned({ errorLines: 1 })).toEqual(['damaged']);
    expect(warned({ durationMs: 45_000, frames: 1125 })).toEqual(['long_source']);
    expect(warned({}, { width: 320, height: 180 })).toEqual(['low_resolution']);
    expect(warned({}, { field_order: 'tt' })).toEqual(['interlaced']);
    expect(warned({}, { color_transfer: 'arib-std-b67' })).toEqual(['hdr']);
  });
});
