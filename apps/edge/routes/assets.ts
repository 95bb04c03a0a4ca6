import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { addSource, putCueClip } from '../../../lib/db/exercises.ts';
import { cueName, languageTag } from '../../../lib/domain/recipe.ts';
import { AppError, type ErrorCode, isErrorCode } from '../../../lib/errors.ts';
import { type AssetAnswer, type AssetKind, validationReport } from '../../../lib/media/contract.ts';
import { allow } from '../auth.ts';
import { capBody } from '../body-cap.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { idParam, json } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter, type EdgeEnv } from '../router.ts';
import { findWritableExercise } from './exercises.ts';

const report = validationReport
  .extend({
    sha256: z.string().openapi({ description: 'Of the bytes as they were sent.' }),
    bytes: z.int(),
  })
  .openapi('UploadReport', {
    description: 'What was measured. `errors` is empty here: a file with errors is refused and not kept.',
  });

const file = {
  required: true,
  content: {
    'application/octet-stream': {
      schema: { type: 'string' as const, format: 'binary' },
      example: '(the bytes of the file)',
    },
  },
};

/** What is wrong with the file, and what the media service, which looks at it and stores it, may say or not say. */
const uploadProblems: ErrorCode[] = [
  'not_found',
  'source_too_large',
  'source_undecodable',
  'source_no_video',
  'source_no_audio',
  'source_too_short',
  'source_too_long',
  'ffmpeg_failed',
  'ffmpeg_silent',
  'ffmpeg_timeout',
  'aborted',
  'media_busy',
  'media_draining',
  'media_unreachable',
  'media_unavailable',
  'media_silent',
  'media_protocol',
  'storage_failed',
  'bunny_unauthorized',
];

const tags = ['Exercises'];

const putSource = operation({
  method: 'put',
  path: '/v1/exercises/{id}/source',
  operationId: 'uploadSource',
  tags,
  summary: 'Upload the source video',
  description:
    'The body is the file itself. It is streamed on, measured and kept; it becomes the current source of the exercise. ' +
    'Errors in the report refuse it, warnings do not.',
  middleware: allow('content.write'),
  request: { params: idParam(examples.ids.exercise), body: file },
  responses: { 200: json(report, 'Kept.', examples.uploadReport) },
  problems: uploadProblems,
});

const putCue = operation({
  method: 'put',
  path: '/v1/exercises/{id}/cues/{language}/{name}',
  operationId: 'uploadCue',
  tags,
  summary: 'Upload a voice clip',
  description:
    'One clip for each language and cue; a new one takes the place of the old. Names: `start`, `hold`, `rest`, `next-set`, ' +
    '`switch-side`, `last-rep`, `done`, `countdown-1` to `countdown-3`, `count-1` to `count-100`.',
  middleware: allow('content.write'),
  request: {
    params: idParam(examples.ids.exercise).extend({
      language: languageTag.meta({ example: 'en' }),
      name: cueName.meta({ example: 'count-1' }),
    }),
    body: file,
  },
  responses: { 200: json(report, 'Kept.', examples.uploadReport) },
  problems: uploadProblems,
});

/** Refuses a file that has errors, with all of them; the first one's code is the problem's. */
function assertUsable(answer: AssetAnswer): void {
  const [first] = answer.report.errors;
  if (first) {
    throw new AppError(isErrorCode(first.code) ? first.code : 'invalid_request', {
      sentence: first.sentence,
      issues: answer.report.errors.map(({ code, sentence }) => ({ path: 'body', message: sentence, code })),
    });
  }
  if (answer.location === null)
    throw new AppError('media_protocol', { detail: 'an asset without errors has no location' });
}

export function assetRoutes(deps: EdgeDeps) {
  const { db } = deps.database;
  const maxBytes = deps.config.MAX_UPLOAD_BYTES;

  /** Streams the request's body to the media service, which alone may write to storage. */
  const upload = async (c: Context<EdgeEnv>, kind: AssetKind, orgId: string | null): Promise<AssetAnswer> => {
    const declared = c.req.header('Content-Length');
    if (declared !== undefined && Number(declared) > maxBytes) {
      throw new AppError('payload_too_large', { sentence: `The file is larger than ${maxBytes} bytes.` });
    }
    const source = c.req.raw.body;
    if (source === null || declared === '0') {
      throw new AppError('invalid_request', { issues: [{ path: 'body', message: 'expects the file as the body' }] });
    }
    const capped = capBody(source, maxBytes);
    try {
      const answer = await deps.media.uploadAsset(
        { tier: orgId === null ? 'platform' : `org:${orgId}`, kind, body: capped.body },
        { signal: c.req.raw.signal },
      );
      assertUsable(answer);
      return answer;
    } catch (error) {
      capped.assertWithin();
      throw error;
    }
  };

  const present = ({ sha256, bytes, report }: AssetAnswer) => ({ sha256, bytes, ...report });

  return createRouter()
    .openapi(putSource, async (c) => {
      const { id } = c.req.valid('param');
      const { exercise } = await findWritableExercise(deps, id, c.var.who);
      const asset = await upload(c, 'source', exercise.orgId);
      const { sha256, bytes, report } = asset;
      const { durationMs } = report.facts;
      await addSource(db, { exerciseId: id, sha256, bytes, durationMs, report, uploadedBy: c.var.who.sub });
      return c.json(present(asset), 200);
    })
    .openapi(putCue, async (c) => {
      const { id, language, name } = c.req.valid('param');
      const { exercise } = await findWritableExercise(deps, id, c.var.who);
      const asset = await upload(c, 'cue', exercise.orgId);
      const { sha256, bytes, report } = asset;
      const { durationMs } = report.facts;
      const uploadedBy = c.var.who.sub;
      await putCueClip(db, { exerciseId: id, language, name, sha256, bytes, durationMs, uploadedBy });
      return c.json(present(asset), 200);
    });
}
