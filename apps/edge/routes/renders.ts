import { z } from '@hono/zod-openapi';
import { cancelForClinic, type RenderState, retryForClinic } from '../../../lib/db/clinic-renders.ts';
import { renderStatus } from '../../../lib/domain/render-states.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { mirrorBriefly } from '../mirror-briefly.ts';
import { id, idParam, json, jsonBody } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';

const stateSchema = z
  .object({ id, status: renderStatus, generation: z.int().min(0) })
  .openapi('RenderState', { description: 'Watch it further among the renders of the programme.' });

const tags = ['Renders'];

const retry = operation({
  method: 'post',
  path: '/v1/renders/{id}/retry',
  operationId: 'retryRender',
  tags,
  summary: 'Ask for a video again',
  description:
    'For one that failed, and for one that waits before it is tried again. One that is ready is made anew only with ' +
    '`force`, by a superadmin; until then nobody can play it.',
  middleware: allow('programs.write'),
  request: {
    params: idParam(examples.ids.render),
    body: jsonBody(z.strictObject({ force: z.boolean().default(false) }), { force: false }),
  },
  responses: {
    202: json(stateSchema, 'It is queued.', examples.requeued),
  },
  problems: ['not_found', 'render_ready', 'render_under_way'],
});

const cancel = operation({
  method: 'post',
  path: '/v1/renders/{id}/cancel',
  operationId: 'cancelRender',
  tags,
  summary: 'Give up a video that is being made',
  description:
    'Refused where somebody else needs it: another clinic, or, for a specialist, a colleague. It has failed then, with ' +
    'the code `cancelled`, until somebody asks for it again.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.render) },
  responses: { 200: json(stateSchema, 'Given up.', examples.cancelled) },
  problems: ['not_found', 'render_shared', 'render_ended'],
});

const present = ({ id, status, generation }: RenderState) => ({ id, status, generation });

export function renderRoutes({ database: { db }, mirror, statuses }: EdgeDeps) {
  return createRouter()
    .openapi(retry, async (c) => {
      const render = await retryForClinic(db, c.req.valid('param').id, c.var.who, c.req.valid('json').force);
      await Promise.all([mirrorBriefly(mirror, [render]), statuses.changed({ renders: [render.id] })]);
      return c.json(present(render), 202);
    })
    .openapi(cancel, async (c) => {
      const render = await cancelForClinic(db, c.req.valid('param').id, c.var.who);
      await statuses.changed({ renders: [render.id] });
      return c.json(present(render), 200);
    });
}
