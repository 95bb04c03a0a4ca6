import { createRoute, z } from '@hono/zod-openapi';
import { etag } from 'hono/etag';
import { findReadiness, listAssignedPrograms } from '../../../lib/db/readiness.ts';
import { AppError } from '../../../lib/errors.ts';
import { allowPatients, viewerOf } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import { commonProblems, id, idParam, json, pageOf, pageQuery, security, time } from '../openapi.ts';
import { createRouter } from '../router.ts';

const readinessSchema = z
  .object({
    status: z.enum(['preparing', 'ready', 'failed']).openapi({
      description: '`ready` only when every item plays; `failed` as soon as one cannot be made.',
    }),
    total: z.int(),
    ready: z.int(),
    readyThrough: z.int().openapi({ description: 'How many items from the first on already play.' }),
    failed: z.array(z.object({ itemId: id, renderId: id.nullable(), code: z.string(), sentence: z.string() })),
  })
  .openapi('Readiness', { example: { status: 'preparing', total: 5, ready: 3, readyThrough: 2, failed: [] } });

const assignedProgram = z
  .object({
    id,
    title: z.string(),
    language: z.string(),
    publishedAt: time.nullable(),
    assignedAt: time,
    sessions: z.array(z.object({ id, title: z.string() })),
    readiness: readinessSchema,
  })
  .openapi('AssignedProgram');

const tags = ['Patient'];

const mine = createRoute({
  method: 'get',
  path: '/v1/me/programs',
  tags,
  security,
  summary: 'My programmes',
  description: 'What is assigned to the patient and published, newest assignment first.',
  middleware: allowPatients,
  request: { query: pageQuery },
  responses: { 200: json(pageOf(assignedProgram), 'A page of programmes.'), ...commonProblems() },
});

const readiness = createRoute({
  method: 'get',
  path: '/v1/programs/{id}/readiness',
  tags,
  security,
  summary: 'Does it play yet?',
  description:
    'For the patient it is assigned to, once published, and for its clinic. Poll it with `If-None-Match`: 304 while nothing has changed.',
  middleware: etag(),
  request: { params: idParam },
  responses: {
    200: json(readinessSchema, 'Readiness, with its `ETag`.'),
    304: { description: 'As you know it.' },
    ...commonProblems('not_found'),
  },
});

export function readinessRoutes({ database: { db } }: EdgeDeps) {
  return createRouter()
    .openapi(mine, async (c) => {
      const { limit, cursor } = c.req.valid('query');
      const { org, sub } = c.var.who;
      if (org === null) throw new AppError('forbidden');
      const page = await listAssignedPrograms(db, { orgId: org, patientId: sub, limit, after: cursor ?? null });
      const items = page.items.map(({ publishedAt, assignedAt, ...program }) => ({
        ...program,
        publishedAt: publishedAt?.toISOString() ?? null,
        assignedAt: assignedAt.toISOString(),
      }));
      return c.json({ items, nextCursor: page.next }, 200);
    })
    .openapi(readiness, async (c) => {
      const found = await findReadiness(db, c.req.valid('param').id, viewerOf(c.var.who));
      if (!found) throw new AppError('not_found');
      c.header('Cache-Control', 'private, no-cache');
      return c.json(found, 200);
    });
}
