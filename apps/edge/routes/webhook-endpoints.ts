import { z } from '@hono/zod-openapi';
import { audit } from '../../../lib/db/audit.ts';
import { rememberAuthor } from '../../../lib/db/members.ts';
import {
  createEndpoint,
  deleteEndpoint,
  findEndpoint,
  listEndpoints,
  rotateSecret,
  updateEndpoint,
  type WebhookEndpoint,
} from '../../../lib/db/webhook-endpoints.ts';
import { OUTBOUND_EVENTS } from '../../../lib/domain/outbound.ts';
import { AppError } from '../../../lib/errors.ts';
import { createSigner } from '../../../lib/outbound/secret.ts';
import { createTargetGuard } from '../../../lib/outbound/target.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, jsonBody, line, pageOf, pageQuery, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';
import { ownerOf } from '../views/program.ts';

const MAX_URL = 2_000;

const url = z
  .string()
  .max(MAX_URL, `expects at most ${MAX_URL} characters`)
  .openapi({ description: 'https:// on the public Internet, without name and password.' });
const events = z
  .array(z.enum(OUTBOUND_EVENTS))
  .min(1, 'expects at least one event')
  .transform((chosen) => [...new Set(chosen)])
  .openapi({ description: 'Which events are sent there.' });

const endpointSchema = z
  .object({
    id,
    orgId: id,
    url: z.string(),
    description: z.string().nullable(),
    events: z.array(z.enum(OUTBOUND_EVENTS)),
    enabled: z.boolean(),
    disabledReason: z.enum(['gone', 'failing']).nullable().openapi({
      description: '`gone`: it answered 410. `failing`: every attempt failed for days. Null where it was done by hand.',
    }),
    failingSince: time.nullable().openapi({ description: 'Since when every attempt has failed.' }),
    createdBy: z.string(),
    createdAt: time,
    updatedAt: time,
  })
  .openapi('WebhookEndpoint');

const withSecret = endpointSchema
  .extend({
    secret: z.string().nullable().openapi({
      description:
        'What signatures are verified with; shown this once. Null in a repetition by `Idempotency-Key`: rotate to get another.',
    }),
  })
  .openapi('WebhookEndpointWithSecret');

const tags = ['Webhooks'];
const middleware = allow('content.write');
const path = '/v1/webhook-endpoints';

const create = operation({
  method: 'post',
  path,
  operationId: 'createWebhookEndpoint',
  tags,
  middleware,
  summary: 'Have events sent to a server of yours',
  description: 'As docs/webhooks.md says: signed after Standard Webhooks, tried again for three days.',
  request: {
    body: jsonBody(
      z.strictObject({
        url,
        events,
        description: line(200).optional(),
        orgId: id.optional().openapi({ description: 'For a superadmin, who belongs to no organisation.' }),
      }),
      examples.newEndpoint,
    ),
  },
  responses: { 201: json(withSecret, 'Made.', examples.endpointWithSecret) },
  problems: ['conflict', 'endpoint_url_refused', 'endpoint_unresolved', 'webhooks_off'],
});

const list = operation({
  method: 'get',
  path,
  operationId: 'listWebhookEndpoints',
  tags,
  middleware,
  summary: 'List the endpoints',
  description: 'Newest first.',
  request: { query: pageQuery },
  responses: { 200: json(pageOf(endpointSchema), 'A page of endpoints.', examples.page(examples.endpoint)) },
  problems: [],
});

const getOne = operation({
  method: 'get',
  path: `${path}/{id}`,
  operationId: 'getWebhookEndpoint',
  tags,
  middleware,
  summary: 'Get an endpoint',
  description: 'As it is now; its secret is not shown again.',
  request: { params: idParam(examples.ids.endpoint) },
  responses: { 200: json(endpointSchema, 'The endpoint.', examples.endpoint) },
  problems: ['not_found'],
});

const patch = operation({
  method: 'patch',
  path: `${path}/{id}`,
  operationId: 'changeWebhookEndpoint',
  tags,
  middleware,
  summary: 'Change an endpoint',
  description: 'Nothing new is sent to one that is disabled; what waited then is sent when it is enabled again.',
  request: {
    params: idParam(examples.ids.endpoint),
    body: jsonBody(
      z.strictObject({
        url: url.optional(),
        events: events.optional(),
        description: line(200).nullable().optional(),
        enabled: z.boolean().optional(),
      }),
      { enabled: true },
    ),
  },
  responses: { 200: json(endpointSchema, 'As it is now.', examples.endpoint) },
  problems: ['not_found', 'endpoint_url_refused', 'endpoint_unresolved'],
});

const remove = operation({
  method: 'delete',
  path: `${path}/{id}`,
  operationId: 'deleteWebhookEndpoint',
  tags,
  middleware,
  summary: 'Delete an endpoint',
  description: 'What has not been delivered to it never will be.',
  request: { params: idParam(examples.ids.endpoint) },
  responses: { 204: { description: 'Deleted.' } },
  problems: ['not_found'],
});

const rotate = operation({
  method: 'post',
  path: `${path}/{id}/rotate-secret`,
  operationId: 'rotateWebhookSecret',
  tags,
  middleware,
  summary: 'Get a new secret',
  description: 'Each that is replaced goes on signing for 24 hours; a sixth rotation within them is refused with 429.',
  request: { params: idParam(examples.ids.endpoint) },
  responses: { 200: json(withSecret, 'The new secret.', examples.endpointWithSecret) },
  problems: ['not_found', 'webhooks_off'],
});

const present = (endpoint: WebhookEndpoint) => ({
  id: endpoint.id,
  orgId: endpoint.orgId,
  url: endpoint.url,
  description: endpoint.description,
  events: endpoint.events,
  enabled: endpoint.enabled,
  disabledReason: endpoint.disabledReason,
  failingSince: endpoint.failingSince?.toISOString() ?? null,
  createdBy: endpoint.createdBy,
  createdAt: endpoint.createdAt.toISOString(),
  updatedAt: endpoint.updatedAt.toISOString(),
});

export function webhookEndpointRoutes({ config, database: { db } }: EdgeDeps) {
  const guard = createTargetGuard({ allowPrivate: config.WEBHOOK_ALLOW_PRIVATE });
  const signer = config.WEBHOOK_SIGNING_KEY && createSigner(config.WEBHOOK_SIGNING_KEY);
  const signing = () => {
    if (!signer) throw new AppError('webhooks_off');
    return signer;
  };
  const showing = (endpoint: WebhookEndpoint) => ({
    shown: { ...present(endpoint), secret: signing().secretOf(endpoint) },
    kept: JSON.stringify({ ...present(endpoint), secret: null }),
  });

  return createRouter()
    .openapi(create, async (c) => {
      const { who } = c.var;
      const { orgId: asked, description = null, ...input } = c.req.valid('json');
      const orgId = ownerOf(who, asked);
      signing();
      await guard.check(input.url);
      const made = await db.transaction(async (tx) => {
        await rememberAuthor(tx, orgId, who);
        const endpoint = await createEndpoint(tx, { ...input, description, orgId, createdBy: who.sub });
        await audit(tx, who, 'webhook-endpoint.create', endpoint.id);
        return endpoint;
      });
      const { shown, kept } = showing(made);
      c.set('keptBody', kept);
      return c.json(shown, 201);
    })
    .openapi(list, async (c) => {
      const { limit, cursor } = c.req.valid('query');
      const page = await listEndpoints(db, { orgId: c.var.who.org, limit, after: cursor ?? null });
      return c.json({ items: page.items.map(present), nextCursor: page.next }, 200);
    })
    .openapi(getOne, async (c) => {
      const found = await findEndpoint(db, { id: c.req.valid('param').id, orgId: c.var.who.org });
      return c.json(present(found), 200);
    })
    .openapi(patch, async (c) => {
      const { who } = c.var;
      const reach = { id: c.req.valid('param').id, orgId: who.org };
      const changes = c.req.valid('json');
      // Whose it is comes first: a stranger learns nothing of what a URL is worth here.
      await findEndpoint(db, reach);
      if (changes.url !== undefined) await guard.check(changes.url);
      const changed = await db.transaction(async (tx) => {
        const endpoint = await updateEndpoint(tx, reach, changes);
        await audit(tx, who, 'webhook-endpoint.change', endpoint.id, { fields: Object.keys(changes) });
        return endpoint;
      });
      return c.json(present(changed), 200);
    })
    .openapi(remove, async (c) => {
      const { who } = c.var;
      const reach = { id: c.req.valid('param').id, orgId: who.org };
      await db.transaction(async (tx) => {
        await deleteEndpoint(tx, reach);
        await audit(tx, who, 'webhook-endpoint.delete', reach.id);
      });
      return c.body(null, 204);
    })
    .openapi(rotate, async (c) => {
      const { who } = c.var;
      const reach = { id: c.req.valid('param').id, orgId: who.org };
      const rotated = await db.transaction(async (tx) => {
        const endpoint = await rotateSecret(tx, reach);
        signing();
        await audit(tx, who, 'webhook-endpoint.rotate-secret', endpoint.id);
        return endpoint;
      });
      const { shown, kept } = showing(rotated);
      c.set('keptBody', kept);
      return c.json(shown, 200);
    });
}
