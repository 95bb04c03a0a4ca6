import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

const below = (base: string, path: string) => `${base.replace(/\/+$/, '')}/${path}`;

/** The HLS master playlist of a video; `base` is the pull zone's URL, which is configured, never derived. */
export const hlsUrl = (base: string, guid: string) => below(base, `${guid}/playlist.m3u8`);

export const thumbnailUrl = (base: string, guid: string, fileName = 'thumbnail.jpg') =>
  below(base, `${guid}/${encodeURIComponent(fileName)}`);

interface CdnToken {
  /** The pull zone's token authentication key. */
  key: string;
  /** Decoded path of the file, with its leading slash. */
  path: string;
  /** Unix seconds. */
  expires: number;
  /** Everything below this decoded path is covered, not only the file: `/{guid}/`. */
  tokenPath?: string | undefined;
}

/**
 * The token of Bunny's advanced token authentication in its HMAC-SHA256 form
 * (https://docs.bunny.net/cdn/security/token-authentication/advanced; BunnyWay/BunnyCDN.TokenAuthentication).
 */
export function cdnToken({ key, path, expires, tokenPath }: CdnToken): string {
  const signingData = tokenPath === undefined ? '' : `token_path=${tokenPath}`;
  const message = `${tokenPath ?? path}${expires}${signingData}`;
  return `HS256-${createHmac('sha256', key).update(message).digest('base64url')}`;
}

/**
 * Signs a CDN URL in the path form, `/bcdn_token=…&token_path=…&expires=…/{guid}/playlist.m3u8`, so that the relative
 * addresses in a playlist inherit the token. `tokenPath` defaults to the directory of the file.
 */
export function signCdnUrl(url: string, options: { key: string; expires: number; tokenPath?: string }): string {
  const target = new URL(url);
  const path = decodeURIComponent(target.pathname);
  const tokenPath = options.tokenPath ?? path.slice(0, path.lastIndexOf('/') + 1);
  const token = cdnToken({ key: options.key, path, expires: options.expires, tokenPath });
  const segment = `bcdn_token=${token}&token_path=${encodeURIComponent(tokenPath)}&expires=${options.expires}`;
  return `${target.origin}/${segment}${target.pathname}${target.search}`;
}

/**
 * Takes a raw request path (still encoded, no query) apart: the path without its token, and whether that token admits
 * it. `token` is `absent` where there is none, and is not judged where no key is given.
 */
export function readCdnPath(
  rawPath: string,
  key: string | undefined,
  nowSeconds: number,
): { path: string; token: 'absent' | 'unchecked' | 'valid' | 'invalid' } {
  const match = /^\/(bcdn_token=[^/]*)(\/.*)$/.exec(rawPath);
  if (!match) return { path: rawPath, token: 'absent' };
  const [, segment = '', path = ''] = match;
  if (key === undefined) return { path, token: 'unchecked' };
  const params = new URLSearchParams(segment);
  const tokenPath = params.get('token_path') ?? undefined;
  const expires = Number(params.get('expires'));
  const decoded = decodedPath(path);
  const valid =
    decoded !== undefined &&
    Number.isSafeInteger(expires) &&
    expires > nowSeconds &&
    (tokenPath === undefined || decoded.startsWith(tokenPath)) &&
    sameText(params.get('bcdn_token') ?? '', cdnToken({ key, path: decoded, expires, tokenPath }));
  return { path, token: valid ? 'valid' : 'invalid' };
}

function decodedPath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

const sameText = (a: string, b: string) =>
  timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest());
