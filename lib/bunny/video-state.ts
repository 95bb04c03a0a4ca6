import type { VideoModel } from './models.ts';

/** `status` of a video in the API (VideoModelStatus). Not the webhook's numbers: 3 and 4 mean other things there. */
export const VIDEO_MODEL_STATUS = {
  Created: 0,
  Uploaded: 1,
  Processing: 2,
  Transcoding: 3,
  Finished: 4,
  Error: 5,
  UploadFailed: 6,
  JitSegmenting: 7,
  JitPlaylistsCreated: 8,
} as const;
type VideoModelStatusName = keyof typeof VIDEO_MODEL_STATUS;

/** `Status` of a webhook (https://docs.bunny.net/stream/webhooks). Not the API's numbers. */
export const WEBHOOK_STATUS = {
  Queued: 0,
  Processing: 1,
  Encoding: 2,
  Finished: 3,
  ResolutionFinished: 4,
  Failed: 5,
  PresignedUploadStarted: 6,
  PresignedUploadFinished: 7,
  PresignedUploadFailed: 8,
  CaptionsGenerated: 9,
  TitleOrDescriptionGenerated: 10,
} as const;
type WebhookStatusName = keyof typeof WEBHOOK_STATUS;

export type WebhookMeaning = 'progress' | 'finished' | 'resolution-finished' | 'failed' | 'ignored';

const WEBHOOK_MEANING: Record<WebhookStatusName, WebhookMeaning> = {
  Queued: 'progress',
  Processing: 'progress',
  Encoding: 'progress',
  Finished: 'finished',
  ResolutionFinished: 'resolution-finished',
  Failed: 'failed',
  PresignedUploadStarted: 'ignored',
  PresignedUploadFinished: 'ignored',
  PresignedUploadFailed: 'failed',
  CaptionsGenerated: 'ignored',
  TitleOrDescriptionGenerated: 'ignored',
};

/** `undefined` for a number Bunny has added since. */
const nameOf = <T extends string>(table: Record<T, number>, value: number): T | undefined => {
  for (const name in table) if (table[name] === value) return name;
  return undefined;
};

/**
 * What a webhook's status tells us to do. It is a hint, never the truth: ask the API before acting on "finished" or
 * "failed". Unknown numbers are ignored.
 */
export function webhookStatus(status: number): WebhookMeaning {
  const name = nameOf(WEBHOOK_STATUS, status);
  return name === undefined ? 'ignored' : WEBHOOK_MEANING[name];
}

const LEVELS = ['undefined', 'information', 'warning', 'error'] as const;
const ISSUES = [
  'Undefined',
  'StreamLengthsDifference',
  'TranscodingWarnings',
  'IncompatibleResolution',
  'InvalidFramerate',
  'VideoExceededMaxDuration',
  'AudioExceededMaxDuration',
  'OriginalCorrupted',
  'TranscriptionFailed',
  'JitIncompatible',
  'JitFailed',
  'CaptionGenerationFailed',
] as const;

interface VideoMessage {
  level: (typeof LEVELS)[number];
  /** Bunny's name of the issue, or its number where we know no name. */
  code: string;
  /** For the log only: Bunny's messages carry internal paths. */
  text: string;
}

export interface VideoState {
  guid: string;
  title: string;
  /** `created`: no bytes yet. `playable`: some rungs play, more to come. `finished` and `failed` are final. */
  state: 'created' | 'processing' | 'playable' | 'finished' | 'failed';
  /** Bunny's own word, or its number where we know no word: worth an alarm, and taken for `processing`. */
  status: VideoModelStatusName | number;
  /** Whole seconds as the uploaded container claims: see `messages` for what may be wrong with the claim. */
  lengthSeconds: number;
  /** Rungs that play, lowest first: `['360p', '720p']`. */
  availableResolutions: string[];
  messages: VideoMessage[];
  width: number;
  height: number;
  /** 0 until shortly after the video has finished. */
  storageBytes: number;
  hasMp4: boolean;
  collectionId: string | undefined;
  /** Lower-case hex of what was uploaded, where Bunny tells it. */
  originalSha256: string | undefined;
  /** When the video was made; Bunny's times without a zone are UTC. */
  createdAt: Date | undefined;
}

/**
 * Bunny's model of a video in our words. A video that is "Finished" but carries an error message ("most likely not
 * playable", says Bunny) is failed; one with a warning may be truncated, so compare its duration before trusting it.
 */
export function videoState(model: VideoModel): VideoState {
  const availableResolutions = (model.availableResolutions ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const messages = (model.transcodingMessages ?? []).map((each) => ({
    level: LEVELS[each.level] ?? 'undefined',
    code: ISSUES[each.issueCode] ?? String(each.issueCode),
    text: [each.message, each.value].filter(Boolean).join(': '),
  }));
  const name = nameOf(VIDEO_MODEL_STATUS, model.status);
  return {
    guid: model.guid,
    title: model.title,
    state: stateOf(name, availableResolutions, messages),
    status: name ?? model.status,
    lengthSeconds: model.length,
    availableResolutions,
    messages,
    width: model.width,
    height: model.height,
    storageBytes: model.storageSize,
    hasMp4: model.hasMP4Fallback,
    collectionId: model.collectionId || undefined,
    originalSha256: model.originalHash?.toLowerCase(),
    createdAt: model.dateUploaded ? parseBunnyDate(model.dateUploaded) : undefined,
  };
}

function stateOf(
  name: VideoModelStatusName | undefined,
  resolutions: string[],
  messages: VideoMessage[],
): VideoState['state'] {
  switch (name) {
    case 'Created':
      return 'created';
    case 'Finished':
      return messages.some((message) => message.level === 'error') ? 'failed' : 'finished';
    case 'Error':
    case 'UploadFailed':
      return 'failed';
    case 'Transcoding':
      return resolutions.length > 0 ? 'playable' : 'processing';
    case 'JitPlaylistsCreated':
      return 'playable';
    default:
      return 'processing';
  }
}

/** `2026-09-05T23:21:53.891` (UTC, no zone) or `…53.8912345Z`. */
function parseBunnyDate(text: string): Date | undefined {
  const date = new Date(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
