import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { StorageClient } from '../bunny/storage-client.ts';
import type { ComposeLine } from './contract.ts';
import type { StoredFile } from './manifest.ts';

type StoredLine = Extract<ComposeLine, { type: 'stored' }>;
export type ArtefactKind = StoredLine['kind'];

export interface ArtefactStore {
  storage: Pick<StorageClient, 'put' | 'list'>;
  /** Public base URL of the zone. */
  cdnUrl: string;
}

const CONTENT_TYPE = { mp4: 'video/mp4', jpg: 'image/jpeg', vtt: 'text/vtt; charset=utf-8', json: 'application/json' };
export type ArtefactExtension = keyof typeof CONTENT_TYPE;

/** Every render has a directory of its own in here. */
export const RENDERS_DIR = 'renders';
export const rendersDir = (recipeHash: string) => `${RENDERS_DIR}/${recipeHash}`;
export const manifestPath = (recipeHash: string) => `${rendersDir(recipeHash)}/manifest.json`;
export const artefactPath = (recipeHash: string, sha256: string, extension: ArtefactExtension) =>
  `${rendersDir(recipeHash)}/${sha256}.${extension}`;
export const publicUrl = (cdnUrl: string, path: string) => `${cdnUrl.replace(/\/+$/, '')}/${path}`;

/** Stores the artefacts of one render under the hashes of their bytes; what is there already is not sent again. */
export class ArtefactWriter {
  readonly #store: ArtefactStore;
  readonly #recipeHash: string;
  readonly #onStored: (line: StoredLine) => void;
  readonly #signal: AbortSignal;
  #present: Promise<Map<string, number>> | undefined;

  constructor(store: ArtefactStore, recipeHash: string, signal: AbortSignal, onStored: (line: StoredLine) => void) {
    this.#store = store;
    this.#recipeHash = recipeHash;
    this.#signal = signal;
    this.#onStored = onStored;
  }

  async file(kind: ArtefactKind, path: string, extension: ArtefactExtension): Promise<StoredFile> {
    const { size } = await stat(path);
    return this.#put(kind, path, await sha256OfFile(path), size, extension);
  }

  async text(kind: ArtefactKind, text: string, extension: ArtefactExtension): Promise<StoredFile> {
    const body = Buffer.from(text, 'utf8');
    return this.#put(kind, body, createHash('sha256').update(body).digest('hex'), body.byteLength, extension);
  }

  /** The one artefact with a fixed name: it is what a re-bake replaces. */
  async manifest(document: unknown): Promise<StoredFile> {
    const body = Buffer.from(`${JSON.stringify(document, null, 2)}\n`, 'utf8');
    const sha256 = createHash('sha256').update(body).digest('hex');
    return this.#send('manifest', manifestPath(this.#recipeHash), body, sha256, body.byteLength, 'json');
  }

  async #put(kind: ArtefactKind, body: string | Buffer, sha256: string, bytes: number, extension: ArtefactExtension) {
    const path = artefactPath(this.#recipeHash, sha256, extension);
    const known = await this.#known();
    if (known.get(path) === bytes) return this.#tell(kind, path, sha256, bytes);
    const stored = await this.#send(kind, path, body, sha256, bytes, extension);
    known.set(path, bytes);
    return stored;
  }

  async #send(
    kind: ArtefactKind,
    path: string,
    body: string | Buffer,
    sha256: string,
    bytes: number,
    extension: ArtefactExtension,
  ): Promise<StoredFile> {
    const contentType = CONTENT_TYPE[extension];
    await this.#store.storage.put(path, body, { sha256, contentType, signal: this.#signal });
    return this.#tell(kind, path, sha256, bytes);
  }

  #tell(kind: ArtefactKind, path: string, sha256: string, bytes: number): StoredFile {
    const url = publicUrl(this.#store.cdnUrl, path);
    this.#onStored({ type: 'stored', kind, url, sha256, bytes });
    return { url, sha256, bytes };
  }

  #known(): Promise<Map<string, number>> {
    this.#present ??= this.#store.storage
      .list(rendersDir(this.#recipeHash), { signal: this.#signal })
      .then((objects) => new Map(objects.map(({ path, bytes }) => [path, bytes])));
    return this.#present;
  }
}

export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}
