import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import PQueue from 'p-queue';
import { z } from 'zod';
import { AppError } from '../../../lib/errors.ts';
import { artefactCheck, rebuildRequest } from '../../../lib/media/contract.ts';
import { checkArtefacts, deleteVideo, listStored, listVideos } from '../../../lib/media/inventory.ts';
import { rebuildManifest } from '../../../lib/media/rebuild.ts';
import type { MediaDeps } from '../deps.ts';
import { parse, parseBody } from '../parse.ts';

/** Bunny refuses more than 5 listings at a time; one is left for the bakes. */
const LISTINGS_AT_ONCE = 4;
/** A recipe with the locations of a hundred clips is some 30 kilobytes, a check of fifty renders 8. */
const MAX_BODY_BYTES = 512 * 1024;

const videosQuery = z.object({
  page: z.coerce.number().int().min(1).max(1_000_000).default(1),
  perPage: z.coerce.number().int().min(10).max(1000).default(100),
});
const storedQuery = z.object({
  after: z.string().max(64).default(''),
  limit: z.coerce.number().int().min(1).max(10_000).default(1000),
});
const guidParam = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'expects the guid of a video');

/** What the library and the zone hold, and the few ways to mend them: for reconcile. */
export const inventoryRoutes = (deps: MediaDeps) => {
  const { compose, checks, stopping, log } = deps;
  const { stream, storage, titlePrefix } = compose;
  const listings = new PQueue({ concurrency: LISTINGS_AT_ONCE });
  const ends = (caller: AbortSignal) => AbortSignal.any([caller, stopping]);
  const limit = bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: () => {
      throw new AppError('payload_too_large');
    },
  });

  return new Hono()
    .get('/v1/inventory/videos', async (c) =>
      c.json(await listVideos(stream, titlePrefix, parse(videosQuery, c.req.query()), ends(c.req.raw.signal))),
    )
    .delete('/v1/inventory/videos/:guid', async (c) => {
      const guid = parse(guidParam, c.req.param('guid'));
      const deleted = await deleteVideo(stream, titlePrefix, guid, ends(c.req.raw.signal));
      log.info({ guid, deleted }, 'deletion of a video');
      return c.json({ deleted });
    })
    .get('/v1/inventory/renders', async (c) => {
      const signal = ends(c.req.raw.signal);
      const query = parse(storedQuery, c.req.query());
      return c.json(await listings.add(() => listStored(storage, query, signal)));
    })
    .post('/v1/inventory/renders/check', limit, async (c) => {
      const check = await parseBody(c, artefactCheck);
      return c.json(await checkArtefacts({ storage, listings, log }, check, ends(c.req.raw.signal)));
    })
    .post('/v1/inventory/renders/rebuild', limit, async (c) => {
      const request = await parseBody(c, rebuildRequest);
      const leave = checks.enter();
      try {
        const answer = await rebuildManifest(compose, request, ends(c.req.raw.signal));
        log.info({ recipeHash: request.recipeHash, dryRun: request.dryRun, ...answer }, 'rebuild of a manifest');
        return c.json(answer);
      } finally {
        leave();
      }
    });
};
