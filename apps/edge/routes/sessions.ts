import { z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import { findPlayableSession, type PlayableItem, type PlayableSession, startRun } from '../../../lib/db/sessions.ts';
import { readinessOf } from '../../../lib/domain/readiness.ts';
import { doseSchema } from '../../../lib/domain/recipe.ts';
import { AppError } from '../../../lib/errors.ts';
import { allowPatients, viewerOf } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { nameIn } from '../names.ts';
import { id, idParam, json, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';
import { createHlsUrls } from '../urls.ts';

const position = z.int().openapi({ description: 'Counted from 0.' });

const playing = z
  .object({
    position,
    exerciseName: z.string(),
    status: z.literal('ready'),
    itemId: id,
    exerciseId: id,
    dose: doseSchema,
    durationMs: z.int().nullable(),
    hlsUrl: z.string().openapi({ description: 'Signed and expiring where the pull zone asks for it: fetch it anew.' }),
    manifestUrl: z.string(),
    captionsUrl: z.string().nullable(),
    posterUrl: z.string().nullable(),
    baselines: z.array(
      z.object({
        name: z.string(),
        width: z.int(),
        height: z.int(),
        url: z.string(),
        sha256: z.string(),
        bytes: z.int(),
      }),
    ),
  })
  .openapi('PlayingItem');

const waiting = z
  .object({ position, exerciseName: z.string(), status: z.enum(['pending', 'rendering', 'transcoding', 'failed']) })
  .openapi('WaitingItem', { description: 'Nothing of it can be played yet, so nothing of it is told.' });

const playSchema = z
  .object({
    sessionId: id,
    programId: id.nullable(),
    title: z.string(),
    status: z.enum(['preparing', 'ready', 'failed']),
    items: z.array(z.union([playing, waiting])),
  })
  .openapi('PlayableSession');

const runSchema = z.object({ id, sessionId: id, startedAt: time }).openapi('Run');

const tags = ['Patient'];

const play = operation({
  method: 'get',
  path: '/v1/sessions/{id}/play',
  operationId: 'playSession',
  tags,
  summary: 'What to play, in order',
  description: 'Addresses only for what really plays. For the patient it is assigned to and for its clinic.',
  request: { params: idParam(examples.ids.session) },
  responses: { 200: json(playSchema, 'The session.', examples.playable) },
  problems: ['not_found'],
});

const run = operation({
  method: 'post',
  path: '/v1/sessions/{id}/runs',
  operationId: 'startRun',
  tags,
  summary: 'Begin the session',
  description: 'Refused until every video of the session plays.',
  middleware: allowPatients,
  request: { params: idParam(examples.ids.session) },
  responses: {
    201: json(runSchema, 'Begun.', examples.run),
  },
  problems: ['not_found', 'session_preparing', 'session_failed'],
});

const readiness = (session: PlayableSession) =>
  readinessOf(
    session.items.map(({ id, render }) => ({
      itemId: id,
      renderId: render?.id ?? null,
      status: render?.status ?? null,
      errorCode: render?.errorCode ?? null,
      errorSentence: render?.errorMessage ?? null,
    })),
  );

export function sessionRoutes(deps: EdgeDeps) {
  const { db } = deps.database;
  const hlsUrlOf = createHlsUrls(deps.config);

  const find = async (sessionId: string, who: Who) => {
    const session = await findPlayableSession(db, sessionId, viewerOf(who));
    if (!session) throw new AppError('not_found');
    return session;
  };

  const present = ({ id, position, exerciseId, exerciseNames, dose, render }: PlayableItem, language: string) => {
    const shown = { position, exerciseName: nameIn(exerciseNames, language) };
    if (render?.status !== 'ready') return { ...shown, status: render?.status ?? ('pending' as const) };
    const { videoGuid, manifestUrl, captionsUrl, posterUrl, baselines, durationMs } = render;
    // The database lets no row be ready without them.
    if (videoGuid === null || manifestUrl === null) throw new Error(`render ${render.id} is ready but has no video`);
    return {
      ...shown,
      status: render.status,
      itemId: id,
      exerciseId,
      dose,
      durationMs,
      hlsUrl: hlsUrlOf(videoGuid),
      manifestUrl,
      captionsUrl,
      posterUrl,
      baselines,
    };
  };

  return createRouter()
    .openapi(play, async (c) => {
      const session = await find(c.req.valid('param').id, c.var.who);
      return c.json(
        {
          sessionId: session.id,
          programId: session.programId,
          title: session.title,
          status: readiness(session).status,
          items: session.items.map((item) => present(item, session.language ?? 'en')),
        },
        200,
      );
    })
    .openapi(run, async (c) => {
      const session = await find(c.req.valid('param').id, c.var.who);
      const { status } = readiness(session);
      if (status === 'failed') throw new AppError('session_failed');
      if (status === 'preparing') throw new AppError('session_preparing');
      const { id, startedAt } = await startRun(db, { sessionId: session.id, patientId: c.var.who.sub });
      return c.json({ id, sessionId: session.id, startedAt: startedAt.toISOString() }, 201);
    });
}
