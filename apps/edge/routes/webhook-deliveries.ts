import { z } from '@hono/zod-openapi';
import { audit } from '../../../lib/db/audit.ts';
import { type Attempt, createTest, type Delivery, listDeliveries, replayDelivery } from '../../../lib/db/deliveries.ts';
import { DELIVERY_STATES, DELIVERY_TYPES } from '../../../lib/domain/outbound.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, pageOf, pageQuery, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';

const deliverySchema = z
  .object({
    id: id.openapi({ description: 'The `webhook-id`, the same at every attempt.' }),
    type: z.enum(DELIVERY_TYPES),
    data: z.record(z.string(), z.unknown()).openapi({ description: 'As in the body that is sent.' }),
    state: z.enum(DELIVERY_STATES),
    createdAt: time,
    endedAt: time.nullable(),
    nextTryAt: time
      .nullable()
      .openapi({ description: 'When it is tried (again) at the earliest; null where it has ended.' }),
  })
  .openapi('WebhookDelivery');

const logged = deliverySchema
  .extend({
    attempts: z
      .array(
        z.object({
          at: time,
          status: z.int().nullable().openapi({ description: 'What the receiver answered; null where it did not.' }),
          errorCode: z.string().nullable().openapi({ description: 'Why it counts as failed; null for a success.' }),
          durationMs: z.int(),
        }),
      )
      .openapi({ description: 'The newest twenty, newest first.' }),
  })
  .openapi('WebhookDeliveryLog');

const tags = ['Webhooks'];
const middleware = allow('content.write');

const list = operation({
  method: 'get',
  path: '/v1/webhook-endpoints/{id}/deliveries',
  operationId: 'listWebhookDeliveries',
  tags,
  middleware,
  summary: 'What was sent, and what became of it',
  description: 'Newest first; kept for a month.',
  request: {
    params: idParam(examples.ids.endpoint),
    query: pageQuery.extend({
      state: z.enum(DELIVERY_STATES).optional().openapi({ description: 'Only those.', example: 'failed' }),
    }),
  },
  responses: { 200: json(pageOf(logged), 'A page of deliveries.', examples.page(examples.deliveryLog)) },
  problems: ['not_found'],
});

const replay = operation({
  method: 'post',
  path: '/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay',
  operationId: 'replayWebhookDelivery',
  tags,
  middleware,
  summary: 'Send it again',
  description:
    'At once, under the same `webhook-id`, delivered before or not; tried again from the beginning of the schedule.',
  request: {
    params: idParam(examples.ids.endpoint).extend({
      deliveryId: id.openapi({ description: 'One of its deliveries.', example: examples.ids.delivery }),
    }),
  },
  responses: { 202: json(deliverySchema, 'To be sent.', examples.delivery) },
  problems: ['not_found', 'conflict'],
});

const test = operation({
  method: 'post',
  path: '/v1/webhook-endpoints/{id}/test',
  operationId: 'testWebhookEndpoint',
  tags,
  middleware,
  summary: 'Send a test',
  description: 'A `webhook.test` event, whatever events the endpoint has chosen; its deliveries say what became of it.',
  request: { params: idParam(examples.ids.endpoint) },
  responses: { 202: json(deliverySchema, 'To be sent.', examples.delivery) },
  problems: ['not_found', 'conflict'],
});

const present = (delivery: Delivery) => ({
  id: delivery.id,
  type: delivery.type,
  data: delivery.data,
  state: delivery.state,
  createdAt: delivery.createdAt.toISOString(),
  endedAt: delivery.endedAt?.toISOString() ?? null,
  nextTryAt: delivery.state === 'pending' ? delivery.nextTryAt.toISOString() : null,
});

const presentAttempt = ({ at, ...attempt }: Attempt) => ({ at: at.toISOString(), ...attempt });

export function webhookDeliveryRoutes({ database: { db } }: EdgeDeps) {
  return createRouter()
    .openapi(list, async (c) => {
      const { limit, cursor, state } = c.req.valid('query');
      const endpoint = { id: c.req.valid('param').id, orgId: c.var.who.org };
      const page = await listDeliveries(db, endpoint, { state: state ?? null, limit, after: cursor ?? null });
      const items = page.items.map(({ delivery, attempts }) => ({
        ...present(delivery),
        attempts: attempts.map(presentAttempt),
      }));
      return c.json({ items, nextCursor: page.next }, 200);
    })
    .openapi(replay, async (c) => {
      const { who } = c.var;
      const { id: endpointId, deliveryId } = c.req.valid('param');
      const again = await db.transaction(async (tx) => {
        const delivery = await replayDelivery(tx, { id: endpointId, orgId: who.org }, deliveryId);
        await audit(tx, who, 'webhook-endpoint.replay', endpointId, { deliveryId });
        return delivery;
      });
      return c.json(present(again), 202);
    })
    .openapi(test, async (c) => {
      const sent = await createTest(db, { id: c.req.valid('param').id, orgId: c.var.who.org });
      return c.json(present(sent), 202);
    });
}
