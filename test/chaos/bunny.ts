import { createHash } from 'node:crypto';
import { z } from 'zod';
import { createStorageClient } from '../../lib/bunny/storage-client.ts';
import { createStreamClient } from '../../lib/bunny/stream-client.ts';
import { videoState } from '../../lib/bunny/video-state.ts';
import { artefactPath, manifestPath } from '../../lib/media/artefacts.ts';
import { manifestSchema } from '../../lib/media/manifest.ts';
import type { Delivery, Stored, Video } from './checker/evidence.ts';
import type { Fleet } from './fleet.ts';

const logSchema = z.object({
  requests: z.array(z.looseObject({ status: z.number() })),
  deliveries: z.array(
    z.object({
      guid: z.string(),
      status: z.number(),
      kind: z.enum(['normal', 'doubled', 'forged', 'lost']),
      answer: z.union([z.number(), z.string()]).optional(),
    }),
  ),
});

/** What the simulator's journal holds at most: beyond it the oldest entries are gone, and nothing can be counted. */
const JOURNAL_LIMIT = 10_000;

/** What Bunny's stand-in has and remembers, asked beside the apps. */
export function openBunny({ bunny, secrets }: Pick<Fleet, 'bunny' | 'secrets'>) {
  const stream = createStreamClient({
    baseUrl: bunny.streamUrl,
    libraryId: bunny.libraryId,
    apiKey: secrets.streamKey,
  });
  const storage = createStorageClient({
    baseUrl: bunny.storageUrl,
    zone: bunny.zone,
    accessKey: secrets.storageKey,
  });

  const bytesOf = async (path: string): Promise<Buffer> => {
    const { stream: body } = await storage.get(path);
    const chunks: Buffer[] = [];
    for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks);
  };

  return {
    videos: async (): Promise<Video[]> => {
      const found: Video[] = [];
      for await (const model of stream.list()) {
        const { guid, title, state } = videoState(model);
        found.push({ guid, title, state });
      }
      return found;
    },

    journal: async (): Promise<{ deliveries: Delivery[]; refused: number }> => {
      const log = logSchema.parse(await (await fetch(`${bunny.streamUrl}/sim/log`)).json());
      if (log.deliveries.length >= JOURNAL_LIMIT)
        throw new Error(`the simulator's journal is full (${JOURNAL_LIMIT}): run for less time`);
      return {
        deliveries: log.deliveries.map((each) => ({ ...each, answer: each.answer })),
        refused: log.requests.filter(({ status }) => status === 429).length,
      };
    },

    /** Reads a render's manifest, and every file that it names byte for byte. */
    stored: async (recipeHash: string): Promise<Stored> => {
      try {
        const text = (await bytesOf(manifestPath(recipeHash))).toString('utf8');
        const manifest = manifestSchema.parse(JSON.parse(text));
        const { master, poster, baselines, captions } = manifest;
        const files = new Map(
          [master, poster, ...baselines, ...(captions ? [captions] : [])].map((file) => [file.url, file]),
        );
        let problem = manifest.recipeHash === recipeHash ? null : `the manifest is that of ${manifest.recipeHash}`;
        for (const { url, sha256, bytes } of files.values()) {
          const extension = url.slice(url.lastIndexOf('.') + 1) as 'mp4' | 'jpg' | 'vtt' | 'json';
          const content = await bytesOf(artefactPath(recipeHash, sha256, extension));
          if (content.byteLength !== bytes || createHash('sha256').update(content).digest('hex') !== sha256)
            problem ??= `${url} does not hold the bytes that the manifest names`;
          if (!url.endsWith(artefactPath(recipeHash, sha256, extension)))
            problem ??= `${url} is not where its bytes are`;
        }
        return { masterSha256: master.sha256, problem };
      } catch (error) {
        return { masterSha256: null, problem: `its files cannot be read: ${String(error)}` };
      }
    },
  };
}
