import { createRoute, z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import { type AuditAction, audit } from '../../../lib/db/audit.ts';
import { listProgramRenders, type ProgramRender } from '../../../lib/db/program-renders.ts';
import { type Published, type PublishRequest, publishProgram, publishSession } from '../../../lib/db/publish.ts';
import { renderStatus } from '../../../lib/domain/render-states.ts';
import { AppError } from '../../../lib/errors.ts';
import { createTurns } from '../../../lib/turns.ts';
import { allow, viewerOf } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import { mirrorBriefly } from '../mirror-briefly.ts';
import { nameIn } from '../names.ts';
import { commonProblems, id, idParam, json, security, time } from '../openapi.ts';
import { createRouter } from '../router.ts';
import { createHlsUrls } from '../urls.ts';

const count = z.int().min(0);
const counts = z
  .object({ total: count, ready: count, queued: count, inProgress: count, failed: count })
  .openapi('PublishCounts', {
    description: 'Different videos that the programme needs; items with one recipe share one.',
    example: { total: 5, ready: 2, queued: 3, inProgress: 0, failed: 0 },
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

const publish = createRoute({
  method: 'post',
  path: '/v1/programs/{id}/publish',
  tags,
  security,
  summary: 'Publish',
  description:
    'Freezes the programme and queues each video that nobody has baked before. Publishing again changes nothing but ' +
    'queues anew what has failed.',
  middleware: allow('programs.write'),
  request: { params: idParam },
  responses: { 202: json(counts, 'Accepted.'), ...commonProblems('not_found', 'conflict', 'not_publishable') },
});

const publishAlone = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/publish',
  tags: ['Sessions'],
  security,
  summary: 'Publish a session that stands alone',
  description: 'As for a programme. A session of a programme is published with it.',
  middleware: allow('programs.write'),
  request: { params: idParam },
  responses: { 202: json(counts, 'Accepted.'), ...commonProblems('not_found', 'conflict', 'not_publishable') },
});

const renders = createRoute({
  method: 'get',
  path: '/v1/programs/{id}/renders',
  tags,
  security,
  summary: 'Watch the videos of a programme',
  middleware: allow('clinic.read'),
  request: { params: idParam },
  responses: {
    200: json(z.object({ items: z.array(renderSchema) }), 'In playing order; empty before publish.'),
    ...commonProblems('not_found'),
  },
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
