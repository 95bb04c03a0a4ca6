/** Bunny's word on a video, in ours: `playable` has a first resolution, `finished` has all of them. */
export interface TranscodeFacts {
  state: 'missing' | 'created' | 'processing' | 'playable' | 'finished' | 'failed';
  /** What Bunny takes the video's length to be, in whole seconds. */
  lengthSeconds: number;
  /** An error means "most likely not playable", says Bunny. */
  messages: readonly { level: 'undefined' | 'information' | 'warning' | 'error'; code: string; text: string }[];
}

/** Bunny's part of a render failed, so what Bunny has may be why: made again, it is to get another video. */
export const doubtsVideo = (errorCode: string | null): boolean => errorCode?.startsWith('transcode_') ?? false;

export type ReadyOn = 'finished' | 'playable';

export type TranscodeVerdict =
  | { kind: 'ready' }
  | { kind: 'wait' }
  | { kind: 'failed'; code: 'transcode_failed' | 'transcode_truncated'; detail: string }
  /** Nothing to transcode is at Bunny: bake or upload again. `gone` tells a deleted video from one without bytes. */
  | { kind: 'lost'; gone: boolean; detail: string };

/** Bunny counts whole seconds, and containers round up the last frame: a shorter video than this is truncated. */
const LENGTH_TOLERANCE_S = 1.5;

/**
 * What Bunny warned of when it finished a truncated file (measured: status "Finished", the container's full length,
 * and only this to tell). What we upload has passed its checks, so it gives no other cause for such a warning.
 */
const TRUNCATION_WARNINGS = new Set(['TranscodingWarnings', 'StreamLengthsDifference', 'OriginalCorrupted']);

/**
 * Judges a transcode by what Bunny's API says, never by a webhook alone: a video that is "finished" but shorter than
 * what was uploaded, or reported as not playable, is a failure.
 */
export function judgeTranscode(
  facts: TranscodeFacts,
  render: { durationMs: number },
  readyOn: ReadyOn,
): TranscodeVerdict {
  switch (facts.state) {
    case 'missing':
      return { kind: 'lost', gone: true, detail: 'the video is not at Bunny any more' };
    case 'created':
      return { kind: 'lost', gone: false, detail: 'the bytes of the video never arrived at Bunny' };
    case 'failed':
      return { kind: 'failed', code: 'transcode_failed', detail: messagesOf(facts) };
    case 'processing':
      return { kind: 'wait' };
    case 'playable':
      if (readyOn !== 'playable') return { kind: 'wait' };
      break;
    case 'finished':
      break;
  }
  if (facts.messages.some((message) => message.level === 'error')) {
    return { kind: 'failed', code: 'transcode_failed', detail: messagesOf(facts) };
  }
  const warned = facts.messages.some((message) => message.level === 'warning' && TRUNCATION_WARNINGS.has(message.code));
  if (warned || facts.lengthSeconds < render.durationMs / 1000 - LENGTH_TOLERANCE_S) {
    return {
      kind: 'failed',
      code: 'transcode_truncated',
      detail: `Bunny has ${facts.lengthSeconds} s of ${render.durationMs / 1000} s; ${messagesOf(facts)}`,
    };
  }
  return { kind: 'ready' };
}

const messagesOf = (facts: TranscodeFacts) =>
  facts.messages.map((message) => `${message.level} ${message.code}: ${message.text}`).join('; ') || 'no messages';
