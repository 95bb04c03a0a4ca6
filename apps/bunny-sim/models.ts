import { VIDEO_MODEL_STATUS } from '../../lib/bunny/video-state.ts';
import type { Collection, Library, Video } from './library.ts';

/** `2026-09-05T23:21:53.891`: what the API answers, except to create, where it is 7 decimals and a `Z`. */
const withoutZone = (ms: number) => new Date(ms).toISOString().slice(0, -1);
const withTicks = (ms: number) => new Date(ms).toISOString().replace(/Z$/, '0000Z');

/** VideoModel of the Stream OpenAPI 1.6.8, with the values that were measured on a live account. */
export function videoModelOf(video: Video, libraryId: number, justCreated = false) {
  return {
    videoLibraryId: libraryId,
    guid: video.guid,
    title: video.title,
    description: null,
    dateUploaded: justCreated ? withTicks(video.createdAt) : withoutZone(video.createdAt),
    views: 0,
    isPublic: false,
    length: video.length,
    status: video.status,
    framerate: video.framerate,
    rotation: video.rotation,
    width: video.width,
    height: video.height,
    availableResolutions: video.availableResolutions.length > 0 ? video.availableResolutions.join(',') : null,
    outputCodecs: 'x264',
    thumbnailCount: 0,
    encodeProgress: video.encodeProgress,
    storageSize: video.storageSize,
    captions: [],
    hasMP4Fallback: video.availableResolutions.length > 0,
    hasOriginal: video.originalSha256 !== null,
    originalHash: video.status === VIDEO_MODEL_STATUS.Error ? null : (video.originalSha256?.toUpperCase() ?? null),
    collectionId: video.collectionId,
    thumbnailFileName: 'thumbnail.jpg',
    thumbnailUrl: null,
    thumbnailBlurhash: null,
    averageWatchTime: 0,
    totalWatchTime: 0,
    category: 'untagged',
    chapters: [],
    moments: [],
    metaTags: [],
    transcodingMessages: video.messages,
    jitEncodingEnabled: null,
    hasHighQualityPreview: false,
  };
}

export function collectionModelOf(collection: Collection, library: Library, libraryId: number) {
  const videos = [...library.videos.values()].filter((video) => video.collectionId === collection.guid);
  return {
    videoLibraryId: libraryId,
    guid: collection.guid,
    name: collection.name,
    videoCount: videos.length,
    liveStreamCount: 0,
    totalSize: videos.reduce((sum, video) => sum + video.storageSize, 0),
    previewVideoIds:
      videos.length > 0
        ? videos
            .slice(0, 4)
            .map((video) => video.guid)
            .join(',')
        : null,
    previewImageUrls: [],
  };
}

export function resolutionsOf(video: Video, libraryId: number) {
  const references = (path: (name: string) => string) =>
    video.availableResolutions.map((name) => ({ resolution: name, path: path(name) }));
  return {
    videoId: video.guid,
    videoLibraryId: libraryId,
    availableResolutions: video.availableResolutions,
    configuredResolutions: ['240p', '360p', '480p', '720p', '1080p'],
    playlistResolutions: references((name) => `${name}/video.m3u8`),
    storageResolutions: references((name) => `${name}/`),
    mp4Resolutions: references((name) => `play_${name}.mp4`),
    storageObjects: [],
    oldResolutions: [],
    hasBothOldAndNewResolutionFormat: false,
    hasOriginal: video.originalSha256 !== null,
  };
}

/** A page as Bunny cuts it: `itemsPerPage` clamped to 10–1000, `page` at least 1. */
export function pageOf<T, M>(
  items: T[],
  query: { page?: string | undefined; itemsPerPage?: string | undefined },
  toModel: (item: T) => M,
) {
  const number = Math.max(1, Math.trunc(Number(query.page)) || 1);
  const size = Math.min(1000, Math.max(10, Math.trunc(Number(query.itemsPerPage ?? 100)) || 100));
  return {
    totalItems: items.length,
    currentPage: number,
    itemsPerPage: size,
    items: items.slice((number - 1) * size, number * size).map(toModel),
  };
}
