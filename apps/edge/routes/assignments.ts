import { createRoute, z } from '@hono/zod-openapi';
import { assignProgram, unassignProgram } from '../../../lib/db/assignments.ts';
import { audit } from '../../../lib/db/audit.ts';
import { AppError } from '../../../lib/errors.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import { mirrorBriefly } from '../mirror-briefly.ts';
import { commonProblems, id, idParam, json, jsonBody, line, security, time } from '../openapi.ts';
import { createRouter } from '../router.ts';

const patientId = line(200).openapi({ description: 'The `sub` of the patient’s token.', example: 'patient-17' });

const assignment = z
  .object({ programId: id, patientId: z.string(), notifyWhenReady: z.boolean(), createdAt: time })
  .openapi('Assignment');

const tags = ['Assignments'];

const assign = createRoute({
  method: 'post',
  path: '/v1/programs/{id}/assignments',
  tags,
  security,
  summary: 'Give the programme to a patient',
  description:
    'May be done before it is published or ready; the patient sees it once it is published. ' +
    'Videos that it still lacks go before others of the same specialist.',
  middleware: allow('programs.write'),
  request: {
    params: idParam,
    body: jsonBody(z.strictObject({ patientId, notifyWhenReady: z.boolean().default(false) })),
  },
  responses: {
    201: json(assignment, 'Assigned.'),
    200: json(assignment, 'Was assigned already; `notifyWhenReady` is as given now.'),
    ...commonProblems('not_found', 'conflict'),
  },
});

const unassign = createRoute({
  method: 'delete',
  path: '/v1/programs/{id}/assignments/{patientId}',
  tags,
  security,
  summary: 'Take the programme back from a patient',
  middleware: allow('programs.write'),
  request: { params: idParam.extend({ patientId }) },
  responses: { 204: { description: 'Taken back.' }, ...commonProblems('not_found') },
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
