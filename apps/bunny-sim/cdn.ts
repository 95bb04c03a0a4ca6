import { join } from 'node:path';
import { Hono } from 'hono';
import { readCdnPath } from '../../lib/bunny/cdn.ts';
import { storagePathProblem } from '../../lib/bunny/storage-path.ts';
import { contentTypeOf, fileResponse, rawPath } from './http.ts';
import type { Journal, SimContext, SimEnv } from './journal.ts';
import type { Library } from './library.ts';
import type { Zone } from './zone.ts';

export interface CdnDeps {
  library: Library;
  zone: Zone;
  /** Unsigned requests are refused where it is set. */
  tokenKey: string | undefined;
  journal: Journal;
}

/** The only part of the zone that is meant for players. */
const PUBLIC_FOLDER = 'renders/';

const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, HEAD, OPTIONS',
  'Access-Control-Allow-Headers': 'Range',
  'Access-Control-Expose-Headers': 'Accept-Ranges, Content-Length, Content-Range',
};

/** The pull zones in front of the videos (`/{guid}/…`) and of the storage zone (`/renders/…`), in one. */
export function createCdnApp({ library, zone, tokenKey, journal }: CdnDeps): Hono<SimEnv> {
  const app = new Hono<SimEnv>();
  const refuse = (status: number) => new Response(null, { status, headers: CORS });
  app.use(journal.middleware('cdn'));
  app.get('/healthz', (c) => c.json({ status: 'ok' }));

  app.options('*', () => refuse(204));
  app.get('*', (c) => {
    const { path, token } = readCdnPath(rawPath(c), tokenKey, Math.floor(Date.now() / 1000));
    if (tokenKey !== undefined && token !== 'valid') return refuse(403);
    const plain = plainPath(path);
    if (plain === undefined) return refuse(404);
    if (plain.startsWith(PUBLIC_FOLDER)) return serveStored(c, plain);
    const [guid = '', ...rest] = plain.split('/');
    if (!library.videos.has(guid) || rest.length === 0) return refuse(404);
    return fileResponse(c, join(library.media(guid), ...rest), { ...CORS, 'Content-Type': contentTypeOf(plain) });
  });
  app.all('*', () => refuse(405));
  return app;

  function serveStored(c: SimContext, path: string): Promise<Response> | Response {
    const object = zone.find(path);
    if (!object || object.isDirectory) return refuse(404);
    return fileResponse(c, zone.blob(object), { ...CORS, 'Content-Type': object.contentType });
  }
}

/** The decoded path without its leading slash, or `undefined` for one with an empty, a dot or a doubly meant segment. */
function plainPath(raw: string): string | undefined {
  try {
    const segments = raw.slice(1).split('/').map(decodeURIComponent);
    const path = segments.join('/');
    return segments.some((segment) => segment.includes('/')) || storagePathProblem(path) ? undefined : path;
  } catch {
    return undefined;
  }
}
