import { z } from '@hono/zod-openapi';
import { listNotifications, readNotification } from '../../../lib/db/notifications.ts';
import { AppError } from '../../../lib/errors.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, pageOf, pageQuery, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';

const notificationSchema = z
  .object({
    id,
    kind: z.string().openapi({
      description: '`exercise.render_failed`, `program.ready` or `webhook_endpoint.disabled`; there may be more.',
    }),
    payload: z.record(z.string(), z.unknown()).openapi({
      description:
        'Of a failed render `renderId`, `exerciseId`, `code` and `message`; of a ready programme `programId` and `title`; ' +
        'of an endpoint `endpointId`, `url` and `reason`.',
    }),
    createdAt: time,
    readAt: time.nullable(),
  })
  .openapi('Notification');

const tags = ['Notifications'];

const list = operation({
  method: 'get',
  path: '/v1/notifications',
  operationId: 'listNotifications',
  tags,
  summary: 'What I am to be told',
  description:
    'Newest first. A clinic’s managers hear of renders that failed and of webhook endpoints that were disabled, superadmins of those of platform exercises, patients ' +
    'of programmes that are ready, where the assignment asks for it.',
  request: {
    query: pageQuery.extend({
      unread: z
        .enum(['true', 'false'])
        .default('false')
        .openapi({ description: 'Only what has not been read.', example: 'true' }),
    }),
  },
  responses: {
    200: json(pageOf(notificationSchema), 'A page of notifications.', examples.page(examples.notification)),
  },
  problems: [],
});

const read = operation({
  method: 'post',
  path: '/v1/notifications/{id}/read',
  operationId: 'readNotification',
  tags,
  summary: 'I have read it',
  description: 'For this person alone; reading it again changes nothing.',
  request: { params: idParam(examples.ids.notification) },
  responses: { 204: { description: 'Noted.' } },
  problems: ['not_found'],
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
