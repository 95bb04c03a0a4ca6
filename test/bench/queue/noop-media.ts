import type { Fleet } from '../../../lib/media/fleet.ts';

const MASTER_SHA256 = 'b'.repeat(64);
export const TARGET = 'http://noop.test';
const DURATION_MS = 10_000;

const notAsked = async () => {
  throw new Error('no part of the life cycle asks this');
};

/** The video of a render, by the name that the webhook will call it. */
const guidOf = (renderId: string) => `video-${renderId}`;

/**
 * A media service that bakes nothing and takes no time, in this process: what is left is the pipeline. It says of a
 * bake what a real one says that is written down: the video, then the artefacts; of a video, that Bunny has finished.
 */
export const noopMedia: Fleet = {
  targets: [TARGET],
  capacity: async () => ({ instance: 'noop', slots: 1_000, busy: 0, draining: false }),
  composeRender: async (_target, { renderId, recipeHash }, { onLine }) => {
    const video = { guid: guidOf(renderId), masterSha256: MASTER_SHA256, collectionId: null };
    onLine?.({ type: 'video', ...video });
    return {
      type: 'done',
      masterSha256: MASTER_SHA256,
      videoGuid: video.guid,
      collectionId: null,
      durationMs: DURATION_MS,
      manifestUrl: `https://cdn.test/renders/${recipeHash}/manifest.json`,
      captionsUrl: null,
      posterUrl: `https://cdn.test/renders/${recipeHash}/poster.jpg`,
      baselines: [],
      warnings: [],
      segments: { encoded: 0, reused: 0 },
      resumed: false,
    };
  },
  videoStatus: async (guid) => ({
    guid,
    state: 'finished',
    lengthSeconds: DURATION_MS / 1000,
    availableResolutions: [],
    collectionId: null,
    hlsUrl: `https://cdn.test/${guid}/playlist.m3u8`,
    messages: [],
  }),
  uploadAsset: notAsked,
  validate: notAsked,
  listVideos: notAsked,
  deleteVideo: notAsked,
  listStored: notAsked,
  checkArtefacts: notAsked,
  rebuildManifest: notAsked,
};
