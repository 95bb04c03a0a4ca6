/**
 * Every failure a stranger, a clinic or a row can see, in one table.
 *
 * `status` is the HTTP status at a boundary, `retryable` whether trying the same thing later can help, `sentence`
 * what may be shown to anyone: no path, host, key or stack in it.
 */
export const ERRORS = {
  // what the caller sent
  invalid_request: { status: 422, retryable: false, sentence: 'The request is not valid.' },
  unauthorized: { status: 401, retryable: false, sentence: 'A valid credential is needed.' },
  forbidden: { status: 403, retryable: false, sentence: 'Your role may not do this.' },
  not_found: { status: 404, retryable: false, sentence: 'There is no such thing.' },
  method_not_allowed: { status: 405, retryable: false, sentence: 'This method is not allowed here.' },
  malformed_body: { status: 400, retryable: false, sentence: 'The body cannot be read.' },
  unsupported_media_type: { status: 415, retryable: false, sentence: 'The body is of a type that is not taken here.' },
  payload_too_large: { status: 413, retryable: false, sentence: 'The body is larger than allowed.' },
  conflict: { status: 409, retryable: false, sentence: 'This does not fit the current state.' },
  idempotency_key_reused: {
    status: 422,
    retryable: false,
    sentence: 'This Idempotency-Key was used for another request.',
  },
  idempotency_under_way: {
    status: 409,
    retryable: true,
    sentence: 'A request with this Idempotency-Key is under way.',
  },
  idempotency_unknown: {
    status: 409,
    retryable: false,
    sentence:
      'The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key.',
  },
  already_published: { status: 409, retryable: false, sentence: 'What is published can no longer be edited.' },
  not_published: { status: 409, retryable: false, sentence: 'This is not published.' },
  not_publishable: { status: 422, retryable: false, sentence: 'The programme cannot be published as it is.' },
  too_many_requests: { status: 429, retryable: true, sentence: 'Too many requests at once; try again later.' },
  session_preparing: { status: 409, retryable: true, sentence: 'This session is still being prepared.' },
  session_failed: { status: 409, retryable: false, sentence: 'A video of this session could not be made.' },
  render_under_way: { status: 409, retryable: false, sentence: 'This video is being made already.' },
  render_ready: { status: 409, retryable: false, sentence: 'This video is ready.' },
  render_ended: { status: 409, retryable: false, sentence: 'This video is not being made any more.' },
  render_shared: { status: 409, retryable: false, sentence: 'Somebody else needs this video, too.' },
  recipe_invalid: { status: 422, retryable: false, sentence: 'This exercise and dose cannot be made into a video.' },
  recipe_too_long: { status: 422, retryable: false, sentence: 'The video would last longer than 60 minutes.' },

  // the source
  source_missing: { status: 422, retryable: false, sentence: 'The exercise has no source video.' },
  source_undecodable: { status: 422, retryable: false, sentence: 'The source video cannot be decoded.' },
  source_no_video: { status: 422, retryable: false, sentence: 'The file holds no video.' },
  source_no_audio: { status: 422, retryable: false, sentence: 'The file holds no sound.' },
  source_too_short: { status: 422, retryable: false, sentence: 'The source video is too short.' },
  source_too_long: { status: 422, retryable: false, sentence: 'The source video is too long.' },
  source_too_large: { status: 413, retryable: false, sentence: 'The file is larger than allowed.' },
  asset_unavailable: { status: 502, retryable: true, sentence: 'A source file could not be fetched.' },
  asset_corrupt: { status: 422, retryable: false, sentence: 'A source file is not the one that was uploaded.' },

  // the bake
  media_busy: { status: 429, retryable: true, sentence: 'All bakers are busy.' },
  media_draining: { status: 503, retryable: true, sentence: 'The media service is shutting down.' },
  media_unreachable: { status: 502, retryable: true, sentence: 'The media service could not be reached.' },
  media_unavailable: { status: 502, retryable: true, sentence: 'The connection to the media service broke.' },
  media_silent: { status: 504, retryable: true, sentence: 'The media service stopped answering.' },
  media_protocol: { status: 502, retryable: true, sentence: 'The media service answered in an unexpected way.' },
  ffmpeg_failed: { status: 500, retryable: true, sentence: 'The video could not be composed.' },
  ffmpeg_silent: { status: 500, retryable: true, sentence: 'The video composer stopped making progress.' },
  ffmpeg_timeout: { status: 500, retryable: true, sentence: 'Composing the video took too long.' },
  verify_failed: { status: 500, retryable: true, sentence: 'The composed video did not pass its checks.' },
  aborted: { status: 499, retryable: true, sentence: 'The work was stopped.' },

  // Bunny
  bunny_unauthorized: { status: 502, retryable: false, sentence: 'The video platform refused our credentials.' },
  bunny_refused: { status: 502, retryable: false, sentence: 'The video platform refused the request.' },
  bunny_unavailable: { status: 502, retryable: true, sentence: 'The video platform could not be reached.' },
  bunny_not_found: { status: 502, retryable: false, sentence: 'The video is not on the video platform.' },
  storage_failed: { status: 502, retryable: true, sentence: 'The video could not be stored.' },
  transcode_failed: { status: 502, retryable: false, sentence: 'The video platform could not process the video.' },
  transcode_truncated: { status: 502, retryable: true, sentence: 'The video platform kept only a part of the video.' },
  transcode_stuck: {
    status: 502,
    retryable: true,
    sentence: 'The video platform never finished processing the video.',
  },
  transcode_missing: { status: 502, retryable: true, sentence: 'The video disappeared from the video platform.' },

  // a clinic's webhooks
  webhooks_off: { status: 501, retryable: false, sentence: 'This installation sends no webhooks.' },
  endpoint_url_refused: { status: 422, retryable: false, sentence: 'Webhooks are not sent to this address.' },
  endpoint_unresolved: { status: 422, retryable: true, sentence: 'The name of the host is not known.' },
  endpoint_unreachable: { status: 502, retryable: true, sentence: 'The receiver could not be reached.' },
  endpoint_tls: { status: 502, retryable: true, sentence: 'The receiver’s certificate is not valid.' },
  endpoint_timeout: { status: 504, retryable: true, sentence: 'The receiver did not answer in time.' },
  endpoint_refused: { status: 502, retryable: true, sentence: 'The receiver did not answer with a 2xx status.' },
  endpoint_gone: { status: 502, retryable: false, sentence: 'The receiver wants no webhooks any more.' },

  // the pipeline
  lease_lost: { status: 500, retryable: true, sentence: 'Another worker has taken over.' },
  lease_expired: { status: 500, retryable: true, sentence: 'The worker stopped before the video was finished.' },
  attempts_exhausted: {
    status: 500,
    retryable: false,
    sentence: 'The video could not be made after several attempts.',
  },
  cancelled: { status: 409, retryable: false, sentence: 'The video was cancelled.' },
  unavailable: { status: 503, retryable: true, sentence: 'A service that is needed for this cannot be reached.' },
  internal: { status: 500, retryable: true, sentence: 'Something went wrong on our side.' },
} as const satisfies Record<string, { status: number; retryable: boolean; sentence: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** One part of a request that was refused. */
export interface Issue {
  path: string;
  message: string;
  code?: string;
}

export interface AppErrorOptions {
  /** Replaces the table's sentence; as safe to show as that. */
  sentence?: string;
  /** For the log only: paths, stderr tails, answers of other services. */
  detail?: string;
  /** Replaces the table's verdict, where this very failure is known better. */
  retryable?: boolean;
  /** How long the other side asked us to wait, in milliseconds. */
  retryAfterMs?: number;
  /** Field by field, where a request was refused. */
  issues?: Issue[];
  cause?: unknown;
}

/** The one error type that crosses module boundaries: `message` is safe for a stranger, `detail` is for the log. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryable: boolean;
  readonly detail: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly issues: Issue[] | undefined;

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(options.sentence ?? ERRORS[code].sentence, { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.status = ERRORS[code].status;
    this.retryable = options.retryable ?? ERRORS[code].retryable;
    this.detail = options.detail;
    this.retryAfterMs = options.retryAfterMs;
    this.issues = options.issues;
  }
}

/** An error as an RFC 9457 problem: all of it may be shown to a stranger. `code` is stable, sentences are not. */
export const problemOf = (error: AppError) => ({
  type: `urn:bakehouse:problem:${error.code}`,
  title: ERRORS[error.code].sentence,
  status: error.status,
  detail: error.message,
  code: error.code,
  ...(error.issues && { errors: error.issues }),
});

export const isErrorCode = (value: string): value is ErrorCode => Object.hasOwn(ERRORS, value);

/** Wraps whatever was thrown; an `AppError` passes unchanged. */
export function toAppError(thrown: unknown, fallback: ErrorCode = 'internal'): AppError {
  if (thrown instanceof AppError) return thrown;
  const detail = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return new AppError(fallback, { detail, cause: thrown });
}
