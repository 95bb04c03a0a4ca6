import { z } from 'zod';
import { AppError } from '../errors.ts';
import { inputArgs } from './argv.ts';
import { runFfprobe } from './run.ts';

const numeric = z.coerce.number().catch(Number.NaN);

const streamSchema = z.object({
  index: z.number().int(),
  codec_type: z.string().catch('unknown'),
  codec_name: z.string().catch('unknown'),
  codec_tag_string: z.string().catch(''),
  width: z.number().int().catch(0),
  height: z.number().int().catch(0),
  pix_fmt: z.string().catch(''),
  field_order: z.string().catch('unknown'),
  sample_aspect_ratio: z.string().catch('1:1'),
  avg_frame_rate: z.string().catch('0/0'),
  color_range: z.string().catch('unknown'),
  color_space: z.string().catch('unknown'),
  color_transfer: z.string().catch('unknown'),
  color_primaries: z.string().catch('unknown'),
  sample_rate: numeric,
  channels: z.number().int().catch(0),
  disposition: z.record(z.string(), z.number()).catch({}),
  tags: z.record(z.string(), z.string()).catch({}),
  side_data_list: z.array(z.looseObject({ rotation: numeric })).catch([]),
});

const answerSchema = z.object({
  format: z.object({
    format_name: z.string(),
    duration: numeric,
  }),
  streams: z.array(streamSchema).catch([]),
});

type RawStream = z.infer<typeof streamSchema>;

/** Facts of a picture track, by its header. */
export const videoFactsSchema = z.object({
  /** Index in the container, for `-map 0:N`. */
  index: z.int(),
  codec: z.string(),
  pixFmt: z.string(),
  /** Stored size, in samples. */
  width: z.int(),
  height: z.int(),
  /** Size as shown: pixel aspect and rotation applied, whole pixels. */
  displayWidth: z.int(),
  displayHeight: z.int(),
  /** Pixel aspect; 1 where unknown. */
  sampleAspect: z.number(),
  /** Clockwise turn a player applies: 0, 90, 180, 270. */
  rotation: z.int(),
  interlaced: z.boolean(),
  /** Frames per second; 0 where unknown. */
  averageRate: z.number(),
  range: z.string(),
  matrix: z.string(),
  transfer: z.string(),
  primaries: z.string(),
  /** Where the sample entry says so; a protected file can also look like any other until it is decoded. */
  encrypted: z.boolean(),
});
export type VideoFacts = z.infer<typeof videoFactsSchema>;

export interface AudioFacts {
  index: number;
  codec: string;
  sampleRate: number;
  channels: number;
}

export interface ProbeFacts {
  /** The demuxer's name list, e.g. `mov,mp4,m4a,3gp,3g2,mj2`. */
  container: string;
  /** What the header claims; only decoding tells. Undefined where it claims nothing. */
  claimedDurationMs: number | undefined;
  /** The first real video stream; cover art is none. */
  video: VideoFacts | undefined;
  audio: AudioFacts[];
}

export interface ProbeOptions {
  ffprobePath: string;
  path: string;
  signal?: AbortSignal | undefined;
  timeoutMs: number;
  /** Demuxers that may open it; default: what people upload. */
  formats?: readonly string[];
}

/** Reads a file's headers. Nothing in the answer is proof that the file decodes. Throws as `runFfprobe` does. */
export async function probe(options: ProbeOptions): Promise<ProbeFacts> {
  const text = await runFfprobe({
    ffprobePath: options.ffprobePath,
    args: ['-of', 'json', '-show_format', '-show_streams', ...inputArgs(options.path, options.formats)],
    signal: options.signal,
    timeoutMs: options.timeoutMs,
  });
  return parseProbe(text);
}

/** Turns ffprobe's JSON into facts. */
export function parseProbe(text: string): ProbeFacts {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new AppError('ffmpeg_failed', { detail: 'ffprobe did not answer with JSON', cause: error });
  }
  const parsed = answerSchema.safeParse(json);
  if (!parsed.success) throw new AppError('ffmpeg_failed', { detail: `ffprobe: ${z.prettifyError(parsed.error)}` });
  const { format, streams } = parsed.data;
  const first = streams.find(isRealVideo);
  return {
    container: format.format_name,
    claimedDurationMs: Number.isFinite(format.duration) ? Math.round(format.duration * 1000) : undefined,
    video: first ? videoFacts(first) : undefined,
    audio: streams.filter((stream) => stream.codec_type === 'audio').map(audioFacts),
  };
}

const isRealVideo = (stream: RawStream) =>
  stream.codec_type === 'video' && stream.disposition.attached_pic !== 1 && stream.disposition.timed_thumbnails !== 1;

function videoFacts(stream: RawStream): VideoFacts {
  const sampleAspect = ratio(stream.sample_aspect_ratio, ':') || 1;
  const rotation = clockwiseRotation(stream);
  const shownWidth = Math.max(1, Math.round(stream.width * sampleAspect));
  const turned = rotation === 90 || rotation === 270;
  return {
    index: stream.index,
    codec: stream.codec_name,
    pixFmt: stream.pix_fmt,
    width: stream.width,
    height: stream.height,
    displayWidth: turned ? stream.height : shownWidth,
    displayHeight: turned ? shownWidth : stream.height,
    sampleAspect,
    rotation,
    interlaced: !['unknown', 'progressive'].includes(stream.field_order),
    averageRate: ratio(stream.avg_frame_rate, '/'),
    range: stream.color_range,
    matrix: stream.color_space,
    transfer: stream.color_transfer,
    primaries: stream.color_primaries,
    encrypted: ENCRYPTED_TAGS.includes(stream.codec_tag_string),
  };
}

/** ISO/IEC 14496-12 8.12: sample entries of protected video and audio. */
const ENCRYPTED_TAGS = ['encv', 'enca'];

function audioFacts(stream: RawStream): AudioFacts {
  return {
    index: stream.index,
    codec: stream.codec_name,
    sampleRate: Number.isFinite(stream.sample_rate) ? stream.sample_rate : 0,
    channels: stream.channels,
  };
}

/** The display matrix is written counter-clockwise; older files carry a clockwise `rotate` tag instead. */
function clockwiseRotation(stream: RawStream): number {
  const matrix = stream.side_data_list.find((side) => Number.isFinite(side.rotation))?.rotation;
  const degrees = matrix === undefined ? Number(stream.tags.rotate ?? 0) || 0 : -matrix;
  return (((Math.round(degrees / 90) * 90) % 360) + 360) % 360;
}

function ratio(text: string, separator: string): number {
  const [above, below] = text.split(separator).map(Number);
  return above && below ? above / below : 0;
}
