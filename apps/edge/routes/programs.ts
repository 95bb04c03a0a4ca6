import { createRoute, z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import { rememberMember, rememberOrganisation } from '../../../lib/db/members.ts';
import {
  createProgram,
  findProgram,
  listPrograms,
  type Program,
  type SessionInput,
  updateProgram,
} from '../../../lib/db/programs.ts';
import { doseSchema, languageTag } from '../../../lib/domain/recipe.ts';
import { AppError } from '../../../lib/errors.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import { nameIn } from '../names.ts';
import { commonProblems, id, idParam, json, jsonBody, line, pageOf, pageQuery, security, time } from '../openapi.ts';
import { createRouter } from '../router.ts';

const exampleSessions = [
  {
    title: 'Monday',
    items: [{ exerciseId: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10', dose: { sets: 3, reps: 12, restSeconds: 45 } }],
  },
];

const sessionsInput = z
  .array(
    z.strictObject({
      title: line(200).optional().openapi({ description: 'Left out: “Session 1”, “Session 2”, …' }),
      items: z.array(z.strictObject({ exerciseId: id, dose: doseSchema.prefault({}) })).max(1000),
    }),
  )
  .max(200)
  .openapi({ description: 'In order. What a dose leaves out has a default.', example: exampleSessions });

const status = z.enum(['draft', 'published', 'archived']);

const programSchema = z
  .object({
    id,
    orgId: id,
    title: z.string(),
    language: z.string(),
    status,
    createdBy: z.string(),
    createdAt: time,
    updatedAt: time,
    publishedAt: time.nullable(),
  })
  .openapi('Program');

const programDetail = programSchema
  .extend({
    sessions: z.array(
      z.object({
        id,
        title: z.string(),
        status,
        items: z.array(
          z.object({
            id,
            exerciseId: id,
            exerciseName: z.string(),
            dose: doseSchema,
            renderId: id.nullable().openapi({ description: 'What the item plays; null before publish.' }),
          }),
        ),
      }),
    ),
  })
  .openapi('ProgramDetail');

const tags = ['Programmes'];

const create = createRoute({
  method: 'post',
  path: '/v1/programs',
  tags,
  security,
  summary: 'Make a draft',
  description: 'Items may use the platform’s exercises and those of the programme’s own clinic.',
  middleware: allow('programs.write'),
  request: {
    body: jsonBody(
      z.strictObject({
        title: line(200),
        language: languageTag.meta({ example: 'en' }),
        orgId: id.optional().openapi({ description: 'For a superadmin, who belongs to no organisation.' }),
        sessions: sessionsInput.default([]),
      }),
    ),
  },
  responses: { 201: json(programDetail, 'Made.'), ...commonProblems() },
});

const list = createRoute({
  method: 'get',
  path: '/v1/programs',
  tags,
  security,
  summary: 'List programmes',
  description: 'The clinic’s, newest first.',
  middleware: allow('clinic.read'),
  request: { query: pageQuery },
  responses: { 200: json(pageOf(programSchema), 'A page of programmes.'), ...commonProblems() },
});

const getOne = createRoute({
  method: 'get',
  path: '/v1/programs/{id}',
  tags,
  security,
  summary: 'Get a programme with its sessions and items',
  middleware: allow('clinic.read'),
  request: { params: idParam },
  responses: { 200: json(programDetail, 'The programme.'), ...commonProblems('not_found') },
});

const patch = createRoute({
  method: 'patch',
  path: '/v1/programs/{id}',
  tags,
  security,
  summary: 'Change a draft',
  description: 'Given sessions replace all that were there. What is published is never changed.',
  middleware: allow('programs.write'),
  request: {
    params: idParam,
    body: jsonBody(
      z.strictObject({
        title: line(200).optional(),
        language: languageTag.optional(),
        sessions: sessionsInput.optional(),
      }),
    ),
  },
  responses: { 200: json(programDetail, 'As it is now.'), ...commonProblems('not_found', 'already_published') },
});

const titled = (given: z.output<typeof sessionsInput>): SessionInput[] =>
  given.map(({ title, items }, position) => ({ title: title ?? `Session ${position + 1}`, items }));

const present = (program: Program) => ({
  id: program.id,
  orgId: program.orgId,
  title: program.title,
  language: program.language,
  status: program.status,
  createdBy: program.createdBy,
  createdAt: program.createdAt.toISOString(),
  updatedAt: program.updatedAt.toISOString(),
  publishedAt: program.publishedAt?.toISOString() ?? null,
});

/** The organisation that a new programme belongs to. */
function ownerOf(who: Who, asked: string | undefined): string {
  if (who.org !== null) {
    if (asked !== undefined && asked !== who.org) throw new AppError('forbidden');
    return who.org;
  }
  if (asked !== undefined) return asked;
  const message = 'A superadmin says for which organisation.';
  throw new AppError('invalid_request', { issues: [{ path: 'orgId', message }] });
}

export function programRoutes(deps: EdgeDeps) {
  const { db } = deps.database;

  const detail = async (programId: string, who: Who) => {
    const found = await findProgram(db, { id: programId, orgId: who.org });
    if (!found) throw new AppError('not_found');
    return {
      ...present(found.program),
      sessions: found.sessions.map(({ id, title, status, items }) => ({
        id,
        title,
        status,
        items: items.map(({ id, exerciseId, exerciseNames, dose, renderId }) => ({
          id,
          exerciseId,
          exerciseName: nameIn(exerciseNames, found.program.language),
          dose,
          renderId,
        })),
      })),
    };
  };

  return createRouter()
    .openapi(create, async (c) => {
      const { who } = c.var;
      const { title, language, orgId: asked, sessions } = c.req.valid('json');
      const orgId = ownerOf(who, asked);
      const programId = await db.transaction(async (tx) => {
        if (who.role === 'manager' || who.role === 'specialist') {
          await rememberMember(tx, { orgId, subject: who.sub, role: who.role });
        } else {
          await rememberOrganisation(tx, orgId);
        }
        return createProgram(tx, { orgId, title, language, createdBy: who.sub, sessions: titled(sessions) });
      });
      return c.json(await detail(programId, who), 201);
    })
    .openapi(list, async (c) => {
      const { limit, cursor } = c.req.valid('query');
      const page = await listPrograms(db, { orgId: c.var.who.org, limit, after: cursor ?? null });
      return c.json({ items: page.items.map(present), nextCursor: page.next }, 200);
    })
    .openapi(getOne, async (c) => c.json(await detail(c.req.valid('param').id, c.var.who), 200))
    .openapi(patch, async (c) => {
      const { id: programId } = c.req.valid('param');
      const { sessions, ...fields } = c.req.valid('json');
      const changes = { ...fields, ...(sessions && { sessions: titled(sessions) }) };
      await db.transaction((tx) => updateProgram(tx, { id: programId, orgId: c.var.who.org }, changes));
      return c.json(await detail(programId, c.var.who), 200);
    });
}
