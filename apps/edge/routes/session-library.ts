import { createRoute, z } from '@hono/zod-openapi';
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
import { commonProblems, id, idParam, json, jsonBody, line, pageOf, pageQuery, security, time } from '../openapi.ts';
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

const create = createRoute({
  method: 'post',
  path: '/v1/sessions',
  tags,
  security,
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
    ),
  },
  responses: { 201: json(sessionDetail, 'Made.'), ...commonProblems() },
});

const list = createRoute({
  method: 'get',
  path: '/v1/sessions',
  tags,
  security,
  summary: 'List the sessions that stand alone',
  description: 'The clinic’s, newest first.',
  middleware: allow('clinic.read'),
  request: { query: pageQuery },
  responses: { 200: json(pageOf(sessionSchema), 'A page of sessions.'), ...commonProblems() },
});

const getOne = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}',
  tags,
  security,
  summary: 'Get a session that stands alone, with its items',
  middleware: allow('clinic.read'),
  request: { params: idParam },
  responses: { 200: json(sessionDetail, 'The session.'), ...commonProblems('not_found') },
});

const patch = createRoute({
  method: 'patch',
  path: '/v1/sessions/{id}',
  tags,
  security,
  summary: 'Change a draft session',
  description: 'Given items replace all that were there. What is published is never changed.',
  middleware: allow('programs.write'),
  request: {
    params: idParam,
    body: jsonBody(
      z.strictObject({
        title: line(200).optional(),
        language: language.optional(),
        items: itemsInput.optional(),
      }),
    ),
  },
  responses: { 200: json(sessionDetail, 'As it is now.'), ...commonProblems('not_found', 'already_published') },
});

const archive = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/archive',
  tags,
  security,
  summary: 'Take a session out of the library',
  description: 'Programmes take no copies of it any more; those that they have stay. Archiving again changes nothing.',
  middleware: allow('programs.write'),
  request: { params: idParam },
  responses: { 200: json(sessionDetail, 'Archived.'), ...commonProblems('not_found') },
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
