import { hlsUrl, signCdnUrl } from '../../lib/bunny/cdn.ts';
import type { EdgeConfig } from '../../lib/config/edge.ts';

/** The address of a video's HLS ladder: signed and expiring where the pull zone has a token key. */
export type HlsUrlOf = (videoGuid: string) => string;

export function createHlsUrls(
  config: Pick<EdgeConfig, 'BUNNY_CDN_URL' | 'BUNNY_CDN_TOKEN_KEY' | 'PLAY_URL_TTL_SECONDS'>,
): HlsUrlOf {
  const { BUNNY_CDN_URL: base, BUNNY_CDN_TOKEN_KEY: key, PLAY_URL_TTL_SECONDS: ttl } = config;
  return (videoGuid) => {
    const url = hlsUrl(base, videoGuid);
    if (key === undefined) return url;
    return signCdnUrl(url, { key, expires: Math.floor(Date.now() / 1000) + ttl, tokenPath: `/${videoGuid}/` });
  };
}
