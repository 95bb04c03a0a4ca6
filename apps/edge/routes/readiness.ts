import { z } from '@hono/zod-openapi';
import { listAssignedPrograms } from '../../../lib/db/readiness.ts';
import { AppError } from '../../../lib/errors.ts';
import { allowPatients, viewerOf } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, pageOf, pageQuery, time } from '../openapi.ts';
import { header, operation, parameter } from '../operation.ts';
import { keyOf } from '../rate-limit.ts';
import { createRouter } from '../router.ts';
import { createWatchers, etagOf, isKnown, MAX_WAIT_S } from '../watchers.ts';

const readinessSchema = z
  .object({
    status: z.enum(['preparing', 'ready', 'failed']).openapi({
      description: '`ready` only when every item plays; `failed` as soon as one cannot be made.',
    }),
    total: z.int(),
    ready: z.int(),
    readyThrough: z.int().openapi({ description: 'How many items from the first on already play.' }),
    failed: z.array(
      z.object({
        itemId: id,
        renderId: id.nullable(),
        code: z.string(),
        sentence: z.string().openapi({ description: 'For the clinic.' }),
        patientSentence: z.string().openapi({ description: 'For the patient, who can do nothing about it.' }),
      }),
    ),
  })
  .openapi('Readiness');

const programReadiness = readinessSchema
  .extend({
    eta: z
      .object({ likely: time, latest: time })
      .nullable()
      .openapi({
        description:
          'While it is preparing: when all will likely be ready, and by when nine of ten are, by what bakes took lately ' +
          'and who is before them. Told in steps, coarser the further away. Null where too little has been baked to tell.',
      }),
  })
  .openapi('ProgramReadiness');

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

const mine = operation({
  method: 'get',
  path: '/v1/me/programs',
  operationId: 'listMyPrograms',
  tags,
  summary: 'My programmes',
  description: 'What is assigned to the patient and published, newest assignment first.',
  middleware: allowPatients,
  request: { query: pageQuery },
  responses: { 200: json(pageOf(assignedProgram), 'A page of programmes.', examples.page(examples.assignedProgram)) },
  problems: [],
});

/** A person's own, held against what is true now at each use. */
export const READINESS_HEADERS = { 'cache-control': 'private, no-cache', vary: 'Accept, Authorization' };

const readiness = operation({
  method: 'get',
  path: '/v1/programs/{id}/readiness',
  operationId: 'getReadiness',
  tags,
  summary: 'Does it play yet?',
  description:
    'For the patient it is assigned to, once published, and for its clinic. Poll it with `If-None-Match`: 304 while nothing ' +
    'has changed. With `wait` the answer comes when it is another than you know (or, where you name none, not preparing ' +
    'any more), at the latest after so many seconds. With `Accept: text/event-stream` it is sent at once and whenever it ' +
    'changes, as events named `readiness` with the same object as data.',
  parameters: [parameter('IfNoneMatch')],
  request: {
    params: idParam(examples.ids.program),
    query: z.object({
      wait: z.coerce.number().int().min(0).max(MAX_WAIT_S).default(0).openapi({ description: 'Seconds.', example: 25 }),
    }),
  },
  responses: {
    200: {
      description: 'Readiness, with its `ETag`.',
      content: {
        'application/json': { schema: programReadiness, example: examples.programReadiness },
        'text/event-stream': { schema: z.string(), example: examples.readinessEvent },
      },
      headers: { ETag: header('ETag') },
    },
    304: { description: 'As you know it.', headers: { ETag: header('ETag') } },
  },
  problems: ['not_found'],
});

export function readinessRoutes({ database: { db }, statuses, stopping }: EdgeDeps) {
  const watchers = createWatchers(statuses, stopping);
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
      const { id: programId } = c.req.valid('param');
      const viewer = viewerOf(c.var.who);
      const asked = { programId, viewer, key: keyOf(c.var.who), signal: c.req.raw.signal };
      for (const [name, value] of Object.entries(READINESS_HEADERS)) c.header(name, value);
      if (c.req.method === 'GET' && wantsEvents(c.req.header('Accept'))) {
        const events = await watchers.events(asked);
        c.header('Content-Type', 'text/event-stream');
        // Nginx would hold small events back: https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering
        c.header('X-Accel-Buffering', 'no');
        return c.body(events, 200);
      }
      const known = c.req.header('If-None-Match');
      const text = await watchers.wait({ ...asked, known, forMs: c.req.valid('query').wait * 1_000 });
      const tag = etagOf(text);
      c.header('ETag', tag);
      if (known !== undefined && isKnown(known, tag)) return c.body(null, 304);
      c.header('Content-Type', 'application/json');
      return c.body(text, 200);
    });
}

/** Whether the caller prefers a stream of events; who takes anything gets the object. */
export const wantsEvents = (accept: string | null | undefined) => /(^|[\s,])text\/event-stream\b/.test(accept ?? '');
