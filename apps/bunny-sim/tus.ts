import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Hono } from 'hono';
import { z } from 'zod';
import { tusSignature } from '../../lib/bunny/tus.ts';
import { readAllJson, writeWhole } from './disk.ts';
import { faultMiddleware, sameKey } from './http.ts';
import type { SimContext, SimEnv } from './journal.ts';
import { landUpload, type StreamDeps, uploadRefusal } from './stream.ts';

const uploadSchema = z.object({ id: z.string(), guid: z.string(), length: z.number(), expires: z.number() });
type Upload = z.infer<typeof uploadSchema>;

const VERSION = { 'Tus-Resumable': '1.0.0' };
const text = (status: number, body: string) => new Response(body === '' ? null : body, { status, headers: VERSION });
const nowSeconds = () => Math.floor(Date.now() / 1000);

/**
 * `/tusupload`: TUS 1.0.0 with creation, as Bunny signs it. Every request carries its own signature; one made anew before
 * the last expired takes the same upload further, after that the bytes are gone.
 */
export function createTusRoutes(deps: StreamDeps, folder: string): Hono<SimEnv> {
  const uploads = new Map<string, Upload>();
  for (const found of readAllJson(folder)) {
    const upload = uploadSchema.parse(found);
    uploads.set(upload.id, upload);
  }
  const bytesOf = (upload: Upload) => join(folder, upload.id);
  const save = (upload: Upload) => writeWhole(join(folder, `${upload.id}.json`), JSON.stringify(upload));
  const forget = (upload: Upload) => {
    uploads.delete(upload.id);
    rmSync(join(folder, `${upload.id}.json`), { force: true });
    rmSync(bytesOf(upload), { force: true });
  };
  const offsetOf = async (upload: Upload) => (await stat(bytesOf(upload))).size;
  const busy = new Set<string>();

  /** The upload that a request names and may touch, or the refusal. */
  const find = (c: SimContext, id: string): Upload | Response => {
    const signed = readSignature(c, deps);
    if (signed instanceof Response) return signed;
    const upload = uploads.get(id);
    if (upload && upload.expires <= nowSeconds()) forget(upload);
    if (!upload || !uploads.has(id) || upload.guid !== signed.guid) return text(404, '');
    if (signed.expires > upload.expires) {
      upload.expires = signed.expires;
      save(upload);
    }
    return upload;
  };

  const app = new Hono<SimEnv>();
  app.use(faultMiddleware(deps.faults, deps.closing, text));

  app.post('/', (c) => {
    const signed = readSignature(c, deps);
    if (signed instanceof Response) return signed;
    if (c.req.header('tus-resumable') !== '1.0.0') return text(412, 'Tus-Resumable: 1.0.0 is required');
    const length = Number(c.req.header('upload-length'));
    if (!Number.isSafeInteger(length) || length < 0) return text(400, 'Upload-Length is required');
    const refusal = uploadRefusal(deps.library, signed.guid);
    if (refusal) return refusal;
    const upload = { id: randomBytes(16).toString('hex'), guid: signed.guid, length, expires: signed.expires };
    writeFileSync(bytesOf(upload), '');
    uploads.set(upload.id, upload);
    save(upload);
    const headers = { ...VERSION, Location: `/tusupload/${upload.id}`, ...expiry(upload) };
    return new Response(null, { status: 201, headers });
  });

  // HEAD comes here too: Hono gives it to the GET handler.
  app.get('/:id', async (c) => {
    const upload = find(c, c.req.param('id'));
    if (upload instanceof Response) return upload;
    const offsets = { 'Upload-Offset': String(await offsetOf(upload)), 'Upload-Length': String(upload.length) };
    return new Response(null, { headers: { ...VERSION, ...offsets, ...expiry(upload), 'Cache-Control': 'no-store' } });
  });

  app.patch('/:id', async (c) => {
    const upload = find(c, c.req.param('id'));
    if (upload instanceof Response) return upload;
    if (c.req.header('content-type') !== 'application/offset+octet-stream') return text(415, '');
    if (busy.has(upload.id)) return text(423, 'The upload is being written to');
    busy.add(upload.id);
    try {
      const offset = await offsetOf(upload);
      if (c.req.header('upload-offset') !== String(offset)) return text(409, '');
      if (offset + Number(c.req.header('content-length') ?? 0) > upload.length) return text(413, '');
      // What has come when the connection breaks stays: that is the use of it.
      await pipeline(c.env.incoming, createWriteStream(bytesOf(upload), { flags: 'a' })).catch(() => undefined);
      const bytes = await offsetOf(upload);
      c.set('receivedBytes', bytes - offset);
      if (bytes > upload.length) {
        forget(upload);
        return text(413, '');
      }
      const headers = { ...VERSION, 'Upload-Offset': String(bytes), ...expiry(upload) };
      if (bytes < upload.length) return new Response(null, { status: 204, headers });
      const file = bytesOf(upload);
      const landed = await landUpload(c, deps, upload.guid, { file, bytes, sha256: await sha256Of(file) });
      forget(upload);
      return landed.ok ? new Response(null, { status: 204, headers }) : landed;
    } finally {
      busy.delete(upload.id);
    }
  });
  return app;
}

const expiry = (upload: Upload) => ({ 'Upload-Expires': new Date(upload.expires * 1000).toUTCString() });

function readSignature(c: SimContext, deps: StreamDeps): { guid: string; expires: number } | Response {
  const library = c.req.header('libraryid');
  const guid = c.req.header('videoid');
  const expires = Number(c.req.header('authorizationexpire'));
  const signature = c.req.header('authorizationsignature') ?? '';
  if (library !== String(deps.libraryId) || !guid || !Number.isSafeInteger(expires)) return text(401, '');
  if (!sameKey(signature, tusSignature(library, deps.streamKey, expires, guid))) return text(401, '');
  if (expires <= nowSeconds()) return text(400, 'Invalid expiry time, cannot be in the past.');
  return { guid, expires };
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}
