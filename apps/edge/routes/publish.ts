import { z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import { type AuditAction, audit } from '../../../lib/db/audit.ts';
import { previewPublish } from '../../../lib/db/preview.ts';
import { listProgramRenders, type ProgramRender } from '../../../lib/db/program-renders.ts';
import { type Published, type PublishRequest, publishProgram, publishSession } from '../../../lib/db/publish.ts';
import { estimate } from '../../../lib/domain/eta.ts';
import { renderStatus } from '../../../lib/domain/render-states.ts';
import { AppError } from '../../../lib/errors.ts';
import { createTurns } from '../../../lib/turns.ts';
import { allow, viewerOf } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { mirrorBriefly } from '../mirror-briefly.ts';
import { nameIn } from '../names.ts';
import { id, idParam, json, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';
import { createHlsUrls } from '../urls.ts';

const count = z.int().min(0);
const counts = z
  .object({ total: count, ready: count, queued: count, inProgress: count, failed: count })
  .openapi('PublishCounts', {
    description: 'Different videos that the programme needs; items with one recipe share one.',
  });

const renderSchema = z
  .object({
    id,
    exerciseId: id,
    exerciseName: z.string(),
    recipeHash: z
      .string()
      .openapi({ description: 'Names exercise, language and dose; the job in the queue is called so too.' }),
    language: z.string(),
    status: renderStatus,
    itemIds: z.array(id).openapi({ description: 'The items of this programme that play it.' }),
    progress: z
      .object({ stage: z.string(), percent: z.int().min(0).max(100) })
      .nullable()
      .openapi({ description: 'While it is rendering.' }),
    generation: count,
    attempts: count,
    maxAttempts: count,
    error: z
      .object({ code: z.string(), sentence: z.string() })
      .nullable()
      .openapi({ description: 'Why it failed, or why the last attempt did.' }),
    warnings: z.array(z.object({ code: z.string(), sentence: z.string() })),
    durationMs: z.int().nullable(),
    masterSha256: z.string().nullable().openapi({ description: 'Of the composed MP4. Once it is ready.' }),
    hlsUrl: z.string().nullable().openapi({ description: 'Once it is ready.' }),
    manifestUrl: z.string().nullable().openapi({ description: 'Once it is ready.' }),
    updatedAt: time,
    readyAt: time.nullable(),
  })
  .openapi('Render');

const tags = ['Programmes'];

const publish = operation({
  method: 'post',
  path: '/v1/programs/{id}/publish',
  operationId: 'publishProgram',
  tags,
  summary: 'Publish',
  description:
    'Freezes the programme and queues each video that nobody has baked before. Publishing again changes nothing but ' +
    'queues anew what has failed.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.program) },
  responses: { 202: json(counts, 'Accepted.', examples.counts) },
  problems: ['not_found', 'conflict', 'not_publishable'],
});

const previewSchema = z
  .object({
    total: count.openapi({ description: 'Different videos that the programme needs.' }),
    ready: count,
    inProgress: count.openapi({ description: 'Being made already, for whomever.' }),
    toBake: count.openapi({ description: 'Made for this programme, those that failed before included.' }),
    estimate: z.object({ likelySeconds: count, latestSeconds: count }).nullable().openapi({
      description: 'Until all is ready; nine of ten are by the latest. Null where too little has been baked to tell.',
    }),
    problems: z
      .array(z.object({ path: z.string(), message: z.string(), code: z.string().optional() }))
      .openapi({ description: 'Why it cannot be published, item by item; empty where it can.' }),
  })
  .openapi('PublishPreview');

const preview = operation({
  method: 'get',
  path: '/v1/programs/{id}/publish-preview',
  operationId: 'previewPublish',
  tags,
  summary: 'What a publish would do',
  description: 'How many videos are ready, how many are to be made, and how long that takes. Changes nothing.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.program) },
  responses: { 200: json(previewSchema, 'As it is now.', examples.preview) },
  problems: ['not_found', 'conflict'],
});

const publishAlone = operation({
  method: 'post',
  path: '/v1/sessions/{id}/publish',
  operationId: 'publishSession',
  tags: ['Sessions'],
  summary: 'Publish a session that stands alone',
  description: 'As for a programme. A session of a programme is published with it.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.librarySession) },
  responses: { 202: json(counts, 'Accepted.', examples.counts) },
  problems: ['not_found', 'conflict', 'not_publishable'],
});

const renders = operation({
  method: 'get',
  path: '/v1/programs/{id}/renders',
  operationId: 'listProgramRenders',
  tags,
  summary: 'Watch the videos of a programme',
  description: 'One for each different video, with what it is at and why it failed; items with one recipe share one.',
  middleware: allow('clinic.read'),
  request: { params: idParam(examples.ids.program) },
  responses: {
    200: json(z.object({ items: z.array(renderSchema) }), 'In playing order; empty before publish.', {
      items: [examples.render],
    }),
  },
  problems: ['not_found'],
});

export function publishRoutes(deps: EdgeDeps) {
  const { db } = deps.database;
  const hlsUrlOf = createHlsUrls(deps.config);

  const present = ({ render, exerciseNames, itemIds }: ProgramRender) => {
    const ready = render.status === 'ready';
    const { progressStage: stage, progressPercent: percent } = render;
    return {
      id: render.id,
      exerciseId: render.exerciseId,
      exerciseName: nameIn(exerciseNames, render.language),
      recipeHash: render.recipeHash,
      language: render.language,
      status: render.status,
      itemIds,
      progress: render.status === 'rendering' && stage !== null ? { stage, percent: percent ?? 0 } : null,
      generation: render.generation,
      attempts: render.attempts,
      maxAttempts: render.maxAttempts,
      error:
        render.errorCode === null || ready ? null : { code: render.errorCode, sentence: render.errorMessage ?? '' },
      warnings: render.warnings,
      durationMs: render.durationMs,
      masterSha256: ready ? render.masterSha256 : null,
      hlsUrl: ready && render.videoGuid !== null ? hlsUrlOf(render.videoGuid) : null,
      manifestUrl: ready ? render.manifestUrl : null,
      updatedAt: render.updatedAt.toISOString(),
      readyAt: render.readyAt?.toISOString() ?? null,
    };
  };

  const inTurn = createTurns();

  const published = async (
    who: Who,
    action: AuditAction,
    subject: string,
    publish: (request: PublishRequest) => Promise<Published>,
  ) => {
    const request: PublishRequest = {
      orgId: who.org,
      by: who.sub,
      alongside: (tx, { counts }) => audit(tx, who, action, subject, { ...counts }),
    };
    // One specialist's publishes wait for each other in Postgres, too, but each with a connection in its hand: a dozen
    // at once would leave none for anybody else.
    const { touched, counts } = await inTurn(who.sub, () => publish(request));
    await Promise.all([
      mirrorBriefly(deps.mirror, touched),
      deps.statuses.changed({ renders: touched.map(({ id }) => id), programs: [subject] }),
    ]);
    return counts;
  };

  return createRouter()
    .openapi(publish, async (c) => {
      const programId = c.req.valid('param').id;
      return c.json(
        await published(c.var.who, 'program.publish', programId, (request) =>
          publishProgram(db, { ...request, programId }),
        ),
        202,
      );
    })
    .openapi(preview, async (c) => {
      const { org: orgId, sub: by } = c.var.who;
      const { unfinished, ...counts } = await previewPublish(db, { programId: c.req.valid('param').id, orgId, by });
      const pace = unfinished.length > 0 ? await deps.statuses.pace() : null;
      const { likelyMs, latestMs } = pace ? estimate(unfinished, pace) : { likelyMs: 0, latestMs: 0 };
      const known = pace !== null || unfinished.length === 0;
      const seconds = (ms: number) => Math.ceil(ms / 1_000);
      return c.json(
        {
          ...counts,
          estimate: known ? { likelySeconds: seconds(likelyMs), latestSeconds: seconds(latestMs) } : null,
        },
        200,
      );
    })
    .openapi(publishAlone, async (c) => {
      const sessionId = c.req.valid('param').id;
      return c.json(
        await published(c.var.who, 'session.publish', sessionId, (request) =>
          publishSession(db, { ...request, sessionId }),
        ),
        202,
      );
    })
    .openapi(renders, async (c) => {
      const found = await listProgramRenders(db, c.req.valid('param').id, viewerOf(c.var.who));
      if (!found) throw new AppError('not_found');
      return c.json({ items: found.map(present) }, 200);
    });
}
