import { AppError } from '../errors.ts';
import { measureAudio, type VideoMeasure } from '../ffmpeg/decode.ts';
import type { ProbeFacts, VideoFacts } from '../ffmpeg/probe.ts';
import { MAX_CLIP_SECONDS } from './clips.ts';
import type { AssetKind, Finding, ValidationReport } from './contract.ts';
import { assertUsable, measureUpload, probeUpload } from './source.ts';
import { decodeSteadily } from './steady.ts';
import { inSlot, type Tools } from './tools.ts';

type Facts = ValidationReport['facts'];

const NOTHING: Facts = {
  ...{ durationMs: 0, frames: 0, width: 0, height: 0, frameRate: 0, variableFrameRate: false },
  ...{ videoCodec: null, audioCodec: null, container: '' },
};

/** Where less than this share of the claimed length decodes, amid complaints, the file is cut off. */
const TRUNCATED_BELOW = 0.9;
/** Longest over shortest distance of two frames from which on the rate counts as variable. */
const VARIABLE_RATIO = 1.5;
/** A film longer than this holds more than one repetition. */
const LONG_MS = 30_000;

/**
 * Decodes an uploaded file and says in an author's words what keeps it from being used (errors) and what will show in the
 * video (warnings). Throws only where the looking itself fails.
 */
export async function validateAsset(
  tools: Tools,
  path: string,
  kind: AssetKind,
  signal: AbortSignal,
): Promise<ValidationReport> {
  let facts = NOTHING;
  try {
    const probed = await probeUpload(tools, path, signal);
    facts = { ...NOTHING, container: probed.container, audioCodec: probed.audio[0]?.codec ?? null };
    if (kind === 'cue') return await validateCue(tools, path, probed, facts, signal);
    const { video } = probed;
    if (!video) throw new AppError('source_no_video');
    const measure = await measureUpload(tools, path, video.index, signal, Math.min(LOOK_DEADLINE_MS, tools.deadlineMs));
    facts = { ...facts, ...pictureFacts(video, measure) };
    return { facts, ...judgeSource(probed, video, measure) };
  } catch (error) {
    const { code, message } = blame(error);
    return { facts, errors: [{ code, severity: 'error', sentence: message }], warnings: [] };
  }
}

/** Whoever uploads waits for the answer; a film that takes longer to decode would hold up every bake, too. */
const LOOK_DEADLINE_MS = 240_000;

/** What the looking found wrong with the file; anything else that went wrong is not its fault, and thrown on. */
function blame(error: unknown): AppError {
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'ffmpeg_timeout') {
    const sentence = 'The file takes too long to decode: use a shorter or a smaller one.';
    return new AppError('source_undecodable', { sentence, cause: error });
  }
  if (!error.code.startsWith('source_')) throw error;
  return error;
}

function pictureFacts(video: VideoFacts, measure: VideoMeasure): Partial<Facts> {
  const { frames, durationMs, longestGapMs, shortestGapMs } = measure;
  return {
    durationMs: Math.floor(durationMs),
    frames,
    width: video.displayWidth,
    height: video.displayHeight,
    frameRate: durationMs > 0 ? Math.round((frames * 100_000) / durationMs) / 100 : 0,
    variableFrameRate: longestGapMs > Math.max(1, shortestGapMs) * VARIABLE_RATIO,
    videoCodec: video.codec,
  };
}

/** Pure: what a measured source is worth. */
export function judgeSource(
  probed: ProbeFacts,
  video: VideoFacts,
  measure: VideoMeasure,
): Pick<ValidationReport, 'errors' | 'warnings'> {
  try {
    assertUsable(measure);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const sentence = video.encrypted ? 'The source video is encrypted.' : error.message;
    return { errors: [{ code: error.code, severity: 'error', sentence }], warnings: [] };
  }
  const damaged = measure.errorLines > 0 || measure.exitCode !== 0;
  const claimed = probed.claimedDurationMs ?? 0;
  if (damaged && measure.durationMs < claimed * TRUNCATED_BELOW) {
    const seconds = (ms: number) => (ms / 1000).toFixed(1);
    const sentence = `The file is cut off: only ${seconds(measure.durationMs)} of ${seconds(claimed)} seconds can be decoded.`;
    return { errors: [{ code: 'source_undecodable', severity: 'error', sentence }], warnings: [] };
  }
  const facts = pictureFacts(video, measure);
  const warnings: Finding[] = [];
  const warn = (condition: boolean, code: string, sentence: string) => {
    if (condition) warnings.push({ code, severity: 'warning', sentence });
  };
  warn(damaged, 'damaged', 'Parts of the video are damaged and may look wrong.');
  warn(
    facts.variableFrameRate === true,
    'variable_frame_rate',
    'The frame rate varies; fast movements may look uneven.',
  );
  warn((facts.frameRate ?? 0) < 20, 'low_frame_rate', 'Few frames a second: movements will look jerky.');
  warn(
    Math.min(video.displayWidth, video.displayHeight) < 480,
    'low_resolution',
    'The picture is small and will look soft on a large screen.',
  );
  warn(video.interlaced, 'interlaced', 'The video is interlaced; fine lines may flicker.');
  warn(
    ['arib-std-b67', 'smpte2084'].includes(video.transfer),
    'hdr',
    'The video is HDR; its colours will look paler than in the original.',
  );
  warn(
    measure.durationMs > LONG_MS,
    'long_source',
    'The video is long: mark where one repetition starts, turns and ends.',
  );
  return { errors: [], warnings };
}

async function validateCue(
  tools: Tools,
  path: string,
  probed: ProbeFacts,
  facts: Facts,
  signal: AbortSignal,
): Promise<ValidationReport> {
  const [audio] = probed.audio;
  if (!audio) throw new AppError('source_no_audio');
  const { ffmpegPath, silenceMs, deadlineMs } = tools;
  const limits = { silenceMs, deadlineMs, maxSeconds: MAX_CLIP_SECONDS + 1 };
  const measure = await inSlot(tools, signal, () =>
    decodeSteadily(
      () => measureAudio({ ffmpegPath, path, stream: audio.index, signal, ...limits }),
      (first, second) => first.samples === second.samples && first.peakDb === second.peakDb,
    ),
  );
  if (measure.samples === 0) {
    throw new AppError('source_undecodable', { sentence: 'The sound cannot be decoded.', detail: measure.stderrTail });
  }
  if (measure.durationMs > MAX_CLIP_SECONDS * 1000) {
    throw new AppError('source_too_long', { sentence: `A voice clip may last ${MAX_CLIP_SECONDS} seconds.` });
  }
  const warnings: Finding[] = [];
  if (measure.peakDb < -60) warnings.push({ code: 'silent', severity: 'warning', sentence: 'Nothing can be heard.' });
  if (measure.errorLines > 0) {
    warnings.push({ code: 'damaged', severity: 'warning', sentence: 'Parts of the sound are damaged.' });
  }
  return { facts: { ...facts, durationMs: Math.round(measure.durationMs) }, errors: [], warnings };
}
