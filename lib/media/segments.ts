import { FPS } from '../domain/timeline.ts';
import { BITEXACT_ARGS, inputArgs } from '../ffmpeg/argv.ts';
import type { VideoFacts } from '../ffmpeg/probe.ts';
import type { SourceFacts, Unit } from './plan.ts';
import { fitInto, type Profile } from './profiles.ts';

/** Ticks a second of every video track made here; a frame is 512 of them. */
export const TIMESCALE = 15_360;
export const TICKS_PER_FRAME = TIMESCALE / FPS;

/**
 * The arguments of one ffmpeg run that decodes a unit's frames once and encodes them for each output.
 *
 * Segments of a profile must fit together bit by bit: `stitchable` keeps x264 from fitting its headers to the content,
 * no B-frames means that decoding order is showing order and no edit list is needed, every segment starts with a
 * keyframe and refers to nothing outside. One thread, since x264's pixels differ with the number of threads.
 */
export function segmentArgs(
  sourcePath: string,
  source: SourceFacts,
  unit: Unit,
  outputs: readonly { profile: Profile; path: string }[],
): string[] {
  return [
    ...['-threads', '1', '-copyts', ...inputArgs(sourcePath)],
    ...['-filter_complex_threads', '1', '-filter_complex', filterGraph(source, unit, outputs)],
    ...outputs.flatMap(({ profile, path }, index) => [
      ...['-map', `[v${index}]`, '-frames:v', String(unit.frames), '-r', String(FPS), '-fps_mode', 'cfr'],
      ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '20', '-profile:v', 'main', '-level:v', profile.level],
      ...['-maxrate', `${profile.maxRate}k`, '-bufsize', `${profile.maxRate * 2}k`],
      ...['-bf', '0', '-g', String(2 * FPS), '-sc_threshold', '0', '-x264-params', 'stitchable=1', '-threads', '1'],
      ...['-color_range', 'tv', '-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709'],
      ...['-video_track_timescale', String(TIMESCALE), ...BITEXACT_ARGS, '-flags:v', '+bitexact+cgop'],
      ...['-f', 'mp4', `file:${path}`],
    ]),
  ];
}

function filterGraph(source: SourceFacts, unit: Unit, outputs: readonly { profile: Profile }[]): string {
  const { video } = source;
  const origin = ((source.firstMs + unit.originMs) / 1000).toFixed(6);
  const last = unit.end - unit.first - 1;
  const behind = unit.frames / FPS + 1;
  const shared = [
    // Wants the neighbouring fields, so it stands before the cut.
    ...(video.interlaced ? ['yadif=mode=send_frame:deint=interlaced'] : []),
    `trim=start_frame=${unit.first}:end_frame=${unit.end}`,
    // `fps` takes the stream to end when its last frame starts and drops that: so the last one comes again, far behind.
    `loop=loop=1:size=1:start=${last}`,
    // A fine clock first: an AVI at 5 frames a second has a clock that ticks every 200 ms.
    'settb=1/90000',
    // The frame on display when the piece starts may have come before it.
    `setpts='if(gt(N,${last}),${behind.toFixed(6)},max(0,T-(${origin}))*${unit.stretch.toFixed(9)})/TB'`,
    // Also fills up with the last frame where the source has no more.
    `fps=${FPS}:start_time=0`,
    ...(unit.mirrored ? ['hflip'] : []),
  ];
  const branches = outputs.map(({ profile }, index) => {
    const size = fitInto(video, profile);
    return [
      ...[`[s${index}]scale=${size.width}:${size.height}:in_color_matrix=${inputMatrix(video)}:out_color_matrix=bt709`],
      ...[':out_range=tv:flags=bicubic+accurate_rnd+bitexact,format=yuv420p'],
      ...[`,pad=${profile.width}:${profile.height}:(ow-iw)/2:(oh-ih)/2:black,setsar=1`],
      ...[`,setparams=range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709[v${index}]`],
    ].join('');
  });
  const split = `split=${outputs.length}${outputs.map((_, index) => `[s${index}]`).join('')}`;
  return [`[0:${video.index}]${[...shared, split].join(',')}`, ...branches].join(';');
}

/** What untagged video means, by the custom of players: BT.601 up to standard definition, BT.709 above. */
function inputMatrix(video: VideoFacts): string {
  if (video.matrix !== 'unknown' && video.matrix !== '') return 'auto';
  return video.width >= 1280 || video.height > 576 ? 'bt709' : 'bt601';
}
