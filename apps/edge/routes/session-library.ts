import { z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import { audit } from '../../../lib/db/audit.ts';
import { rememberAuthor } from '../../../lib/db/members.ts';
import {
  archiveSession,
  createSession,
  findSession,
  listSessions,
  type Session,
  updateSession,
} from '../../../lib/db/session-library.ts';
import { languageTag } from '../../../lib/domain/recipe.ts';
import { AppError } from '../../../lib/errors.ts';
import { allow } from '../auth.ts';
import type { EdgeDeps } from '../deps.ts';
import * as examples from '../examples.ts';
import { id, idParam, json, jsonBody, line, pageOf, pageQuery, time } from '../openapi.ts';
import { operation } from '../operation.ts';
import { createRouter } from '../router.ts';
import { itemSchema, itemsInput, lifeStatus, ownerOf, presentItem } from '../views/program.ts';

const sessionSchema = z
  .object({
    id,
    orgId: id,
    title: z.string(),
    language: z.string(),
    status: lifeStatus,
    createdBy: z.string().nullable(),
    createdAt: time,
    updatedAt: time,
    publishedAt: time.nullable(),
  })
  .openapi('Session');

const sessionDetail = sessionSchema.extend({ items: z.array(itemSchema) }).openapi('SessionDetail');

const language = languageTag.meta({ example: 'en' });
const tags = ['Sessions'];

const create = operation({
  method: 'post',
  path: '/v1/sessions',
  operationId: 'createSession',
  tags,
  summary: 'Make a session that stands alone',
  description: 'A draft for the clinic’s library. Once it is published, programmes may take copies of it.',
  middleware: allow('programs.write'),
  request: {
    body: jsonBody(
      z.strictObject({
        title: line(200),
        language,
        orgId: id.optional().openapi({ description: 'For a superadmin, who belongs to no organisation.' }),
        items: itemsInput.default([]),
      }),
      examples.newSession,
    ),
  },
  responses: { 201: json(sessionDetail, 'Made.', examples.librarySessionDetail) },
  problems: [],
});

const list = operation({
  method: 'get',
  path: '/v1/sessions',
  operationId: 'listSessions',
  tags,
  summary: 'List the sessions that stand alone',
  description: 'The clinic’s, newest first.',
  middleware: allow('clinic.read'),
  request: { query: pageQuery },
  responses: { 200: json(pageOf(sessionSchema), 'A page of sessions.', examples.page(examples.librarySession)) },
  problems: [],
});

const getOne = operation({
  method: 'get',
  path: '/v1/sessions/{id}',
  operationId: 'getSession',
  tags,
  summary: 'Get a session that stands alone, with its items',
  description: 'Of the clinic’s library. A session of a programme is found with the programme.',
  middleware: allow('clinic.read'),
  request: { params: idParam(examples.ids.librarySession) },
  responses: { 200: json(sessionDetail, 'The session.', examples.librarySessionDetail) },
  problems: ['not_found'],
});

const patch = operation({
  method: 'patch',
  path: '/v1/sessions/{id}',
  operationId: 'updateSession',
  tags,
  summary: 'Change a draft session',
  description: 'Given items replace all that were there. What is published is never changed.',
  middleware: allow('programs.write'),
  request: {
    params: idParam(examples.ids.librarySession),
    body: jsonBody(
      z.strictObject({
        title: line(200).optional(),
        language: language.optional(),
        items: itemsInput.optional(),
      }),
      { title: examples.newSession.title },
    ),
  },
  responses: { 200: json(sessionDetail, 'As it is now.', examples.librarySessionDetail) },
  problems: ['not_found', 'already_published'],
});

const archive = operation({
  method: 'post',
  path: '/v1/sessions/{id}/archive',
  operationId: 'archiveSession',
  tags,
  summary: 'Take a session out of the library',
  description: 'Programmes take no copies of it any more; those that they have stay. Archiving again changes nothing.',
  middleware: allow('programs.write'),
  request: { params: idParam(examples.ids.librarySession) },
  responses: { 200: json(sessionDetail, 'Archived.', { ...examples.librarySessionDetail, status: 'archived' }) },
  problems: ['not_found'],
});

const present = (session: Session) => ({
  id: session.id,
  orgId: session.orgId,
  title: session.title,
  language: languageOf(session),
  status: session.status,
  createdBy: session.createdBy,
  createdAt: session.createdAt.toISOString(),
  updatedAt: session.updatedAt.toISOString(),
  publishedAt: session.publishedAt?.toISOString() ?? null,
});

/** Every session that stands alone is made with one. */
const languageOf = ({ language }: Session) => language ?? 'en';

export function sessionLibraryRoutes({ database: { db } }: EdgeDeps) {
  const detail = async (sessionId: string, who: Who) => {
    const found = await findSession(db, { id: sessionId, orgId: who.org });
    if (!found) throw new AppError('not_found');
    const { session, items } = found;
    return { ...present(session), items: items.map((item) => presentItem(item, languageOf(session))) };
  };

  return createRouter()
    .openapi(create, async (c) => {
      const { who } = c.var;
      const { orgId: asked, ...session } = c.req.valid('json');
      const orgId = ownerOf(who, asked);
      const sessionId = await db.transaction(async (tx) => {
        await rememberAuthor(tx, orgId, who);
        return createSession(tx, { ...session, orgId, createdBy: who.sub });
      });
      return c.json(await detail(sessionId, who), 201);
    })
    .openapi(list, async (c) => {
      const { limit, cursor } = c.req.valid('query');
      const page = await listSessions(db, { orgId: c.var.who.org, limit, after: cursor ?? null });
      return c.json({ items: page.items.map(present), nextCursor: page.next }, 200);
    })
    .openapi(getOne, async (c) => c.json(await detail(c.req.valid('param').id, c.var.who), 200))
    .openapi(patch, async (c) => {
      const { id: sessionId } = c.req.valid('param');
      const changes = c.req.valid('json');
      await db.transaction((tx) => updateSession(tx, { id: sessionId, orgId: c.var.who.org }, changes));
      return c.json(await detail(sessionId, c.var.who), 200);
    })
    .openapi(archive, async (c) => {
      const { id: sessionId } = c.req.valid('param');
      const { who } = c.var;
      await db.transaction(async (tx) => {
        await archiveSession(tx, { id: sessionId, orgId: who.org });
        await audit(tx, who, 'session.archive', sessionId);
      });
      return c.json(await detail(sessionId, who), 200);
    });
}
