import { createRoute, z } from '@hono/zod-openapi';
import { listNotifications, readNotification } from '../../../lib/db/notifications.ts';
import { AppError } from '../../../lib/errors.ts';
import type { EdgeDeps } from '../deps.ts';
import { commonProblems, id, idParam, json, pageOf, pageQuery, security, time } from '../openapi.ts';
import { createRouter } from '../router.ts';

const notificationSchema = z
  .object({
    id,
    kind: z.string().openapi({ description: '`exercise.render_failed` or `program.ready`; there may be more.' }),
    payload: z.record(z.string(), z.unknown()).openapi({
      description:
        'Of a failed render `renderId`, `exerciseId`, `code` and `message`; of a ready programme `programId` and `title`.',
    }),
    createdAt: time,
    readAt: time.nullable(),
  })
  .openapi('Notification', {
    example: {
      id: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a10',
      kind: 'program.ready',
      payload: { programId: '0199f2c1-7b1e-7c35-9a34-2f4f1d6b8a11', title: 'Knee, first month' },
      createdAt: '2026-03-14T09:26:53.589Z',
      readAt: null,
    },
  });

const tags = ['Notifications'];

const list = createRoute({
  method: 'get',
  path: '/v1/notifications',
  tags,
  security,
  summary: 'What I am to be told',
  description:
    'Newest first. A clinic’s managers hear of renders that failed, superadmins of those of platform exercises, patients ' +
    'of programmes that are ready, where the assignment asks for it.',
  request: {
    query: pageQuery.extend({
      unread: z.enum(['true', 'false']).default('false').openapi({ description: 'Only what has not been read.' }),
    }),
  },
  responses: { 200: json(pageOf(notificationSchema), 'A page of notifications.'), ...commonProblems() },
});

const read = createRoute({
  method: 'post',
  path: '/v1/notifications/{id}/read',
  tags,
  security,
  summary: 'I have read it',
  request: { params: idParam },
  responses: { 204: { description: 'Noted.' }, ...commonProblems('not_found') },
});

export function notificationRoutes({ database: { db } }: EdgeDeps) {
  return createRouter()
    .openapi(list, async (c) => {
      const { limit, cursor, unread } = c.req.valid('query');
      const page = await listNotifications(db, {
        ...{ recipient: c.var.who, unread: unread === 'true', limit, after: cursor ?? null },
      });
      const items = page.items.map(({ id, kind, payload, createdAt, readAt }) => ({
        ...{ id, kind, payload },
        createdAt: createdAt.toISOString(),
        readAt: readAt?.toISOString() ?? null,
      }));
      return c.json({ items, nextCursor: page.next }, 200);
    })
    .openapi(read, async (c) => {
      const known = await readNotification(db, c.req.valid('param').id, c.var.who);
      if (!known) throw new AppError('not_found');
      return c.body(null, 204);
    });
}
