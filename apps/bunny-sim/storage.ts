import { rm } from 'node:fs/promises';
import { Hono } from 'hono';
import { storagePathProblem } from '../../lib/bunny/storage-path.ts';
import type { Faults } from './faults.ts';
import { contentTypeOf, faultMiddleware, fileResponse, rawPath, receiveBody, sameKey } from './http.ts';
import type { Journal, SimContext, SimEnv } from './journal.ts';
import type { Zone, ZoneObject } from './zone.ts';

export interface StorageDeps {
  zoneName: string;
  zoneKey: string;
  zoneReadKey: string;
  zone: Zone;
  incoming: string;
  faults: Faults;
  journal: Journal;
  closing: AbortSignal;
}

const answer = (status: number, message: string) => Response.json({ HttpCode: status, Message: message }, { status });

/** Edge Storage (`/{zone}/{path}`), to the shapes of its OpenAPI document and the bodies seen in the wild. */
export function createStorageApp(deps: StorageDeps): Hono<SimEnv> {
  const { zone, faults } = deps;
  const app = new Hono<SimEnv>();
  app.use(deps.journal.middleware('storage'));
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.use(faultMiddleware(faults, deps.closing, answer));

  app.all('*', async (c) => {
    // Not documented, and seen to answer 401.
    if (c.env.incoming.method === 'HEAD') return new Response(null, { status: 401 });
    const target = readTarget(rawPath(c));
    const key = c.req.header('accesskey') ?? '';
    const writes = sameKey(key, deps.zoneKey);
    if ((!writes && !sameKey(key, deps.zoneReadKey)) || target?.zone !== deps.zoneName)
      return answer(401, 'Unauthorized');
    if (!writes && c.req.method !== 'GET') return answer(403, 'Forbidden');
    if (target.path !== '' && storagePathProblem(target.path)) return answer(400, 'Invalid path');
    switch (c.req.method) {
      case 'GET':
        return target.isDirectory ? list(deps, target.path) : get(c, zone, target.path);
      case 'PUT':
        return target.isDirectory ? makeDirectory(zone, target.path) : put(c, deps, target.path);
      case 'DELETE':
        return remove(c, zone, target);
      default:
        return answer(405, 'Method Not Allowed');
    }
  });
  return app;
}

interface Target {
  zone: string;
  path: string;
  isDirectory: boolean;
}

/** Each segment is decoded by itself, so that an encoded slash or dot can never become a step in the path. */
function readTarget(raw: string): Target | undefined {
  let segments: string[];
  try {
    segments = raw.slice(1).split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const [zone = '', ...rest] = segments;
  const isDirectory = rest.at(-1) === '';
  if (isDirectory) rest.pop();
  // An encoded slash is kept as what it would be: an empty step, which the guard refuses.
  return { zone, path: rest.map((name) => name.replaceAll('/', '//')).join('/'), isDirectory };
}

function get(c: SimContext, zone: Zone, path: string): Promise<Response> | Response {
  const object = zone.find(path);
  if (!object || object.isDirectory) return answer(404, 'Object Not Found');
  return fileResponse(c, zone.blob(object), { 'Content-Type': object.contentType });
}

async function put(c: SimContext, deps: StorageDeps, path: string): Promise<Response> {
  if (path === '') return answer(400, 'Unable to upload file: no file name');
  const received = await receiveBody(c, deps.incoming).catch(() => undefined);
  if (!received) return answer(400, 'Unable to read the request body');
  const expected = c.req.header('checksum');
  if (expected !== undefined && expected.toUpperCase() !== received.sha256.toUpperCase()) {
    await rm(received.file);
    return answer(400, 'The checksum of the uploaded file does not match the Checksum header');
  }
  const given = c.req.header('override-content-type') ?? contentTypeOf(path);
  if (!deps.zone.put(path, received, given)) {
    await rm(received.file);
    return answer(400, 'Unable to upload file: Failed to create file, directory for path does not exist');
  }
  return answer(201, 'File uploaded.');
}

function makeDirectory(zone: Zone, path: string): Response {
  return zone.makeDirectory(path) ? answer(201, 'Directory created.') : answer(400, 'Unable to create directory');
}

function remove(c: SimContext, zone: Zone, { path, isDirectory }: Target): Response {
  const rootAllowed = [c.req.query('allowRootDelete'), c.req.header('allowrootdelete')].includes('true');
  if (path === '' && !rootAllowed) return answer(400, 'Object delete failed');
  if (isDirectory && path !== '' && !zone.isDirectory(path)) return answer(404, 'Object Not Found');
  return zone.delete(path) || path === '' ? answer(200, 'File deleted successfuly.') : answer(404, 'Object Not Found');
}

function list({ zone, zoneName, faults }: StorageDeps, directory: string): Response {
  const visibleUntil = Date.now() - faults.listingDelayMs;
  const items = zone.list(directory).filter((object) => object.changedAt <= visibleUntil);
  return Response.json(items.map((object) => itemOf(object, zoneName, directory)));
}

function itemOf(object: ZoneObject, zoneName: string, directory: string) {
  return {
    Guid: object.guid,
    StorageZoneName: zoneName,
    Path: directory === '' ? `/${zoneName}/` : `/${zoneName}/${directory}/`,
    ObjectName: object.path.slice(object.path.lastIndexOf('/') + 1),
    Length: object.bytes,
    // Times have no zone.
    LastChanged: new Date(object.changedAt).toISOString().slice(0, -1),
    IsDirectory: object.isDirectory,
    ServerId: 1,
    ArrayNumber: 0,
    UserId: '00000000-0000-0000-0000-000000000000',
    ContentType: object.contentType,
    DateCreated: new Date(object.createdAt).toISOString().slice(0, -1),
    StorageZoneId: 1,
    Checksum: object.checksum,
    ReplicatedZones: null,
  };
}
