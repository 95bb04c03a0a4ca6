import { z } from '@hono/zod-openapi';
import { audit } from '../../../lib/db/audit.ts';
import { archiveProgram, copyProgram } from '../../../lib/db/program-life.ts';
import { attachSession } from '../../../lib/db/session-library.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, jsonBody, line } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';
import { programDetail, readProgram } from '../views/program.ts';

const tags = ['Programmes'];

const archive = operation({
  method: 'post',
  path: '/v1/programs/{id}/archive',
  operationId: 'archiveProgram',
  tags,
  summary: 'Take a programme out of use',
  description:
    'Patients do not see it any more, and it is published and assigned no more. Its videos stay. Archiving again changes nothing.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.program) },
  responses: { 200: json(programDetail, 'Archived.', examples.archivedProgram) },
  problems: ['not_found'],
});

const copy = operation({
  method: 'post',
  path: '/v1/programs/{id}/copy',
  operationId: 'copyProgram',
  tags,
  summary: 'Make a new version',
  description:
    'A draft with the same sessions and items, to be changed and published: what is published never changes.',
  middleware: allow('programs.write'),
  request: {
    params: idParam(examples.ids.program),
    body: jsonBody(
      z.strictObject({ title: line(200).optional().openapi({ description: 'Left out: as the original’s.' }) }),
      { title: examples.newProgram.title },
    ),
  },
  responses: { 201: json(programDetail, 'The new draft.', examples.draftDetail) },
  problems: ['not_found'],
});

const attach = operation({
  method: 'post',
  path: '/v1/programs/{id}/sessions',
  operationId: 'attachSession',
  tags,
  summary: 'Add a session of the library',
  description: 'Puts a copy of a published session at the end of a draft programme.',
  middleware: allow('programs.write'),
  request: {
    params: idParam(examples.ids.program),
    body: jsonBody(z.strictObject({ sessionId: id }), { sessionId: examples.ids.librarySession }),
  },
  responses: {
    201: json(programDetail, 'The programme with the copy in it.', examples.draftDetail),
  },
  problems: ['not_found', 'already_published', 'not_published'],
});

export function programLifeRoutes({ database: { db }, statuses }: EdgeDeps) {
  return createRouter()
    .openapi(archive, async (c) => {
      const { who } = c.var;
      const programId = c.req.valid('param').id;
      await db.transaction(async (tx) => {
        await archiveProgram(tx, { id: programId, orgId: who.org });
        await audit(tx, who, 'program.archive', programId);
      });
      await statuses.changed({ programs: [programId] });
      return c.json(await readProgram(db, programId, who), 200);
    })
    .openapi(copy, async (c) => {
      const { who } = c.var;
      const { title } = c.req.valid('json');
      const made = await copyProgram(db, { id: c.req.valid('param').id, orgId: who.org, title, by: who.sub });
      return c.json(await readProgram(db, made, who), 201);
    })
    .openapi(attach, async (c) => {
      const { who } = c.var;
      const programId = c.req.valid('param').id;
      const { sessionId } = c.req.valid('json');
      await db.transaction((tx) => attachSession(tx, { programId, sessionId, orgId: who.org }));
      return c.json(await readProgram(db, programId, who), 201);
    });
}
