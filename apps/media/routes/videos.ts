import { Hono } from 'hono';
import { hlsUrl } from '../../../lib/bunny/cdn.ts';
import type { VideoStatus } from '../../../lib/media/contract.ts';
import { findVideo } from '../../../lib/media/publish.ts';
import type { MediaDeps } from '../deps.ts';

/** Bunny's state of a video in our words; a video Bunny does not know is an answer, not an error. */
export const videoRoutes = (deps: MediaDeps) =>
  new Hono().get('/v1/exercises/videos/:guid/status', async (c) => {
    const guid = c.req.param('guid');
    const video = await findVideo(deps.compose.stream, guid, c.req.raw.signal);
    const status: VideoStatus = {
      guid,
      state: video?.state ?? 'missing',
      lengthSeconds: video?.lengthSeconds ?? 0,
      availableResolutions: video?.availableResolutions ?? [],
      collectionId: video?.collectionId ?? null,
      hlsUrl: hlsUrl(deps.videoCdnUrl, guid),
      messages: video?.messages ?? [],
    };
    return c.json(status);
  });
