import { z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import {
  type CueClip,
  createExercise,
  findExercise,
  listCueClips,
  listExercises,
  type SourcedExercise,
  updateExercise,
} from '../../../lib/db/exercises.ts';
import { rememberMember } from '../../../lib/db/members.ts';
import { languageTag } from '../../../lib/domain/recipe.ts';
import { may } from '../../../lib/domain/roles.ts';
import { AppError } from '../../../lib/errors.ts';
import { validationReport } from '../../../lib/media/contract.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, jsonBody, line, pageOf, pageQuery, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';

const names = z
  .record(languageTag, line(200))
  .refine((value) => Object.keys(value).length > 0, 'expects a name in at least one language')
  .openapi({ description: 'Name by BCP 47 language tag.', example: { en: 'Squat', de: 'Kniebeuge' } });

const mark = z.int().min(0).max(3_600_000).optional();
const repMarks = z
  .strictObject({ startMs: mark, turnMs: mark, endMs: mark })
  .refine(
    ({ startMs = 0, turnMs = startMs, endMs = turnMs }) => startMs <= turnMs && turnMs <= endMs,
    'expects startMs ≤ turnMs ≤ endMs',
  )
  .openapi({
    description:
      'Where the repetition starts, turns and ends in the source, in milliseconds. What is left out is found from the source.',
    example: { startMs: 0, turnMs: 1500, endMs: 3000 },
  });

const sourceSchema = z.object({
  sha256: z.string(),
  bytes: z.int(),
  durationMs: z.int().openapi({ description: 'Measured by decoding.' }),
  warnings: validationReport.shape.warnings,
  uploadedAt: time,
});

/** Reports are kept as they were measured; one that says nothing of warnings has none to show. */
const keptWarnings = validationReport.pick({ warnings: true }).catch({ warnings: [] });

const exerciseSchema = z
  .object({
    id,
    tier: z.enum(['platform', 'org']),
    orgId: id.nullable(),
    names: z.record(z.string(), z.string()),
    repMarks: z.object({ startMs: mark, turnMs: mark, endMs: mark }),
    source: sourceSchema.nullable().openapi({ description: 'The video uploaded last; null before the first.' }),
    createdAt: time,
    updatedAt: time,
  })
  .openapi('Exercise');

const exerciseDetail = exerciseSchema
  .extend({
    cues: z.array(
      z.object({ language: z.string(), name: z.string(), sha256: z.string(), durationMs: z.int(), updatedAt: time }),
    ),
  })
  .openapi('ExerciseDetail');

const tags = ['Exercises'];

const create = operation({
  method: 'post',
  path: '/v1/exercises',
  operationId: 'createExercise',
  tags,
  summary: 'Make an exercise',
  description: 'A superadmin makes platform exercises, which all clinics share; a manager makes those of their clinic.',
  middleware: allow('content.write'),
  request: {
    body: jsonBody(
      z.strictObject({ names, repMarks: repMarks.default({}), tier: z.enum(['platform', 'org']).optional() }),
      examples.newExercise,
    ),
  },
  responses: { 201: json(exerciseDetail, 'Made.', examples.madeExercise) },
  problems: [],
});

const list = operation({
  method: 'get',
  path: '/v1/exercises',
  operationId: 'listExercises',
  tags,
  summary: 'List exercises',
  description: 'The platform’s and the clinic’s own, newest first.',
  middleware: allow('clinic.read'),
  request: { query: pageQuery },
  responses: { 200: json(pageOf(exerciseSchema), 'A page of exercises.', examples.page(examples.exercise)) },
  problems: [],
});

const getOne = operation({
  method: 'get',
  path: '/v1/exercises/{id}',
  operationId: 'getExercise',
  tags,
  summary: 'Get an exercise with its cue clips',
  description: 'The platform’s and the clinic’s own; another clinic’s answers 404.',
  middleware: allow('clinic.read'),
  request: { params: idParam(examples.ids.exercise) },
  responses: { 200: json(exerciseDetail, 'The exercise.', examples.exerciseDetail) },
  problems: ['not_found'],
});

const patch = operation({
  method: 'patch',
  path: '/v1/exercises/{id}',
  operationId: 'updateExercise',
  tags,
  summary: 'Change names or marks',
  description: 'What is given replaces what was there. Videos already baked stay as they are.',
  middleware: allow('content.write'),
  request: {
    params: idParam(examples.ids.exercise),
    body: jsonBody(z.strictObject({ names: names.optional(), repMarks: repMarks.optional() }), examples.newExercise),
  },
  responses: { 200: json(exerciseDetail, 'As it is now.', examples.exerciseDetail) },
  problems: ['not_found'],
});

const present = ({ exercise, source }: SourcedExercise) => ({
  id: exercise.id,
  tier: exercise.tier,
  orgId: exercise.orgId,
  names: exercise.names,
  repMarks: exercise.repMarks,
  source: source && {
    sha256: source.sha256,
    bytes: source.bytes,
    durationMs: source.durationMs,
    warnings: keptWarnings.parse(source.report).warnings,
    uploadedAt: source.createdAt.toISOString(),
  },
  createdAt: exercise.createdAt.toISOString(),
  updatedAt: exercise.updatedAt.toISOString(),
});

const presentDetail = (found: SourcedExercise, clips: readonly CueClip[]) => ({
  ...present(found),
  cues: clips.map(({ language, name, sha256, durationMs, updatedAt }) => ({
    language,
    name,
    sha256,
    durationMs,
    updatedAt: updatedAt.toISOString(),
  })),
});

/** The organisation that a new exercise goes to; null for the platform. */
function tierFor(who: Who, tier: 'platform' | 'org' | undefined): string | null {
  const asked = tier ?? (who.org === null ? 'platform' : 'org');
  if (asked === 'platform') {
    if (!may(who.role, 'platform.write')) throw new AppError('forbidden');
    return null;
  }
  if (who.org === null) {
    const message = 'A superadmin belongs to no organisation and makes platform exercises.';
    throw new AppError('invalid_request', { issues: [{ path: 'tier', message }] });
  }
  return who.org;
}

/** The exercise where this person may change it. Throws `not_found` for another organisation's, `forbidden` for the platform's. */
export async function findWritableExercise(deps: EdgeDeps, exerciseId: string, who: Who): Promise<SourcedExercise> {
  const found = await findExercise(deps.database.db, { id: exerciseId, orgId: who.org });
  if (!found) throw new AppError('not_found');
  if (found.exercise.tier === 'platform' && !may(who.role, 'platform.write')) throw new AppError('forbidden');
  return found;
}

export function exerciseRoutes(deps: EdgeDeps) {
  const { db } = deps.database;

  const detail = async (exerciseId: string, who: Who) => {
    const found = await findExercise(db, { id: exerciseId, orgId: who.org });
    if (!found) throw new AppError('not_found');
    return presentDetail(found, await listCueClips(db, exerciseId));
  };

  return createRouter()
    .openapi(create, async (c) => {
      const { who } = c.var;
      const body = c.req.valid('json');
      const orgId = tierFor(who, body.tier);
      const role = who.role === 'superadmin' ? 'superadmin' : 'manager';
      const exercise = await db.transaction(async (tx) => {
        await rememberMember(tx, { orgId: who.org, subject: who.sub, role });
        return createExercise(tx, { orgId, names: body.names, repMarks: body.repMarks, createdBy: who.sub });
      });
      return c.json(presentDetail({ exercise, source: null }, []), 201);
    })
    .openapi(list, async (c) => {
      const { limit, cursor } = c.req.valid('query');
      const page = await listExercises(db, { orgId: c.var.who.org, limit, after: cursor ?? null });
      return c.json({ items: page.items.map(present), nextCursor: page.next }, 200);
    })
    .openapi(getOne, async (c) => c.json(await detail(c.req.valid('param').id, c.var.who), 200))
    .openapi(patch, async (c) => {
      const { id: exerciseId } = c.req.valid('param');
      await findWritableExercise(deps, exerciseId, c.var.who);
      await updateExercise(db, exerciseId, c.req.valid('json'));
      return c.json(await detail(exerciseId, c.var.who), 200);
    });
}
