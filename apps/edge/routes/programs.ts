import { z } from '@hono/zod-openapi';
import { rememberAuthor } from '../../../lib/db/members.ts';
import { createProgram, listPrograms, type SessionInput, updateProgram } from '../../../lib/db/programs.ts';
import { languageTag } from '../../../lib/domain/recipe.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, jsonBody, line, pageOf, pageQuery } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';
import { itemsInput, ownerOf, presentProgram, programDetail, programSchema, readProgram } from '../views/program.ts';

const sessionsInput = z
  .array(
    z.strictObject({
      title: line(200).optional().openapi({ description: 'Left out: “Session 1”, “Session 2”, …' }),
      items: itemsInput,
    }),
  )
  .max(200)
  .openapi({ description: 'In order.' });

const tags = ['Programmes'];

const create = operation({
  method: 'post',
  path: '/v1/programs',
  operationId: 'createProgram',
  tags,
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
      examples.newProgram,
    ),
  },
  responses: { 201: json(programDetail, 'Made.', examples.draftDetail) },
  problems: [],
});

const list = operation({
  method: 'get',
  path: '/v1/programs',
  operationId: 'listPrograms',
  tags,
  summary: 'List programmes',
  description: 'The clinic’s, newest first.',
  middleware: allow('clinic.read'),
  request: { query: pageQuery },
  responses: { 200: json(pageOf(programSchema), 'A page of programmes.', examples.page(examples.program)) },
  problems: [],
});

const getOne = operation({
  method: 'get',
  path: '/v1/programs/{id}',
  operationId: 'getProgram',
  tags,
  summary: 'Get a programme with its sessions and items',
  description: 'As it was made, or as it is in its draft; how its videos stand is told by its renders.',
  middleware: allow('clinic.read'),
  request: { params: idParam(examples.ids.program) },
  responses: { 200: json(programDetail, 'The programme.', examples.programDetail) },
  problems: ['not_found'],
});

const patch = operation({
  method: 'patch',
  path: '/v1/programs/{id}',
  operationId: 'updateProgram',
  tags,
  summary: 'Change a draft',
  description: 'Given sessions replace all that were there. What is published is never changed.',
  middleware: allow('programs.write'),
  request: {
    params: idParam(examples.ids.program),
    body: jsonBody(
      z.strictObject({
        title: line(200).optional(),
        language: languageTag.optional(),
        sessions: sessionsInput.optional(),
      }),
      { title: examples.newProgram.title },
    ),
  },
  responses: { 200: json(programDetail, 'As it is now.', examples.draftDetail) },
  problems: ['not_found', 'already_published'],
});

const titled = (given: z.output<typeof sessionsInput>): SessionInput[] =>
  given.map(({ title, items }, position) => ({ title: title ?? `Session ${position + 1}`, items }));

export function programRoutes(deps: EdgeDeps) {
  const { db } = deps.database;

  return createRouter()
    .openapi(create, async (c) => {
      const { who } = c.var;
      const { title, language, orgId: asked, sessions } = c.req.valid('json');
      const orgId = ownerOf(who, asked);
      const programId = await db.transaction(async (tx) => {
        await rememberAuthor(tx, orgId, who);
        return createProgram(tx, { orgId, title, language, createdBy: who.sub, sessions: titled(sessions) });
      });
      return c.json(await readProgram(db, programId, who), 201);
    })
    .openapi(list, async (c) => {
      const { limit, cursor } = c.req.valid('query');
      const page = await listPrograms(db, { orgId: c.var.who.org, limit, after: cursor ?? null });
      return c.json({ items: page.items.map(presentProgram), nextCursor: page.next }, 200);
    })
    .openapi(getOne, async (c) => c.json(await readProgram(db, c.req.valid('param').id, c.var.who), 200))
    .openapi(patch, async (c) => {
      const { id: programId } = c.req.valid('param');
      const { sessions, ...fields } = c.req.valid('json');
      const changes = { ...fields, ...(sessions && { sessions: titled(sessions) }) };
      await db.transaction((tx) => updateProgram(tx, { id: programId, orgId: c.var.who.org }, changes));
      return c.json(await readProgram(db, programId, c.var.who), 200);
    });
}
