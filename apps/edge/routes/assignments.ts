import { z } from '@hono/zod-openapi';
import { assignProgram, unassignProgram } from '../../../lib/db/assignments.ts';
import { audit } from '../../../lib/db/audit.ts';
import { AppError } from '../../../lib/errors.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { mirrorBriefly } from '../mirror-briefly.ts';
import { id, idParam, json, jsonBody, line, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';

const patientId = line(200).openapi({ description: 'The `sub` of the patient’s token.', example: 'patient-17' });

const assignment = z
  .object({ programId: id, patientId: z.string(), notifyWhenReady: z.boolean(), createdAt: time })
  .openapi('Assignment');

const tags = ['Assignments'];

const assign = operation({
  method: 'post',
  path: '/v1/programs/{id}/assignments',
  operationId: 'assignProgram',
  tags,
  summary: 'Give the programme to a patient',
  description:
    'May be done before it is published or ready; the patient sees it once it is published. ' +
    'Videos that it still lacks go before others of the same specialist.',
  middleware: allow('programs.write'),
  request: {
    params: idParam(examples.ids.program),
    body: jsonBody(z.strictObject({ patientId, notifyWhenReady: z.boolean().default(false) }), examples.newAssignment),
  },
  responses: {
    201: json(assignment, 'Assigned.', examples.assignment),
    200: json(assignment, 'Was assigned already; `notifyWhenReady` is as given now.', examples.assignment),
  },
  problems: ['not_found', 'conflict'],
});

const unassign = operation({
  method: 'delete',
  path: '/v1/programs/{id}/assignments/{patientId}',
  operationId: 'unassignProgram',
  tags,
  summary: 'Take the programme back from a patient',
  description: 'It is gone from the patient’s programmes at once; nothing that was baked is lost.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.program).extend({ patientId }) },
  responses: { 204: { description: 'Taken back.' } },
  problems: ['not_found'],
});

export function assignmentRoutes({ database: { db }, mirror, statuses }: EdgeDeps) {
  return createRouter()
    .openapi(assign, async (c) => {
      const { who } = c.var;
      const programId = c.req.valid('param').id;
      const given = c.req.valid('json');
      const { assignment, bumped } = await assignProgram(db, {
        programId,
        orgId: who.org,
        by: who.sub,
        ...given,
        alongside: (tx) => audit(tx, who, 'program.assign', programId, { ...given }),
      });
      // Nothing of the programme changes, but the patient may be told at once.
      await Promise.all([mirrorBriefly(mirror, bumped), statuses.changed({ programs: [programId] })]);
      const { created, createdAt, ...made } = assignment;
      return c.json({ ...made, createdAt: createdAt.toISOString() }, created ? 201 : 200);
    })
    .openapi(unassign, async (c) => {
      const { id: programId, patientId } = c.req.valid('param');
      const { who } = c.var;
      await db.transaction(async (tx) => {
        const removed = await unassignProgram(tx, { programId, orgId: who.org, patientId });
        if (!removed) throw new AppError('not_found');
        await audit(tx, who, 'program.unassign', programId, { patientId });
      });
      await statuses.changed({ programs: [programId] });
      return c.body(null, 204);
    });
}
