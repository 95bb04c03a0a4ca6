import { describe, expect, it } from 'vitest';
import { cdnToken, hlsUrl, readCdnPath, signCdnUrl, thumbnailUrl } from '../../../lib/bunny/cdn.ts';

const KEY = 'SecurityKey';
const EXPIRES = 1598024587;

describe('cdnToken', () => {
  it('reproduces the vectors of the official signers', () => {
    expect(cdnToken({ key: KEY, path: '/300kb.jpg', expires: EXPIRES })).toBe(
      'HS256-o10JRWlsAItyAsdKS6jJKjabHN4FrFsplDHPV1idcX4',
    );
    expect(cdnToken({ key: KEY, path: '/300kb.jpg', expires: EXPIRES, tokenPath: '/abc' })).toBe(
      'HS256-uVZvT3SbEoVKYJyDJgbcsDmSFf73cv-uNUVaJiKWpbQ',
    );
  });
});

describe('playback addresses', () => {
  it('are built on the configured base, with or without a slash at its end', () => {
    expect(hlsUrl('https://cdn.example/', 'g')).toBe('https://cdn.example/g/playlist.m3u8');
    expect(thumbnailUrl('https://cdn.example', 'g')).toBe('https://cdn.example/g/thumbnail.jpg');
  });
});

describe('signCdnUrl', () => {
  const url = signCdnUrl('https://cdn.example/guid-1/playlist.m3u8', { key: KEY, expires: EXPIRES });
  const path = new URL(url).pathname;
  const now = EXPIRES - 60;
  const segment = path.split('/')[1];

  it('puts the token first, so that relative addresses in a playlist inherit it', () => {
    expect(path).toMatch(
      /^\/bcdn_token=HS256-[\w-]{43}&token_path=%2Fguid-1%2F&expires=1598024587\/guid-1\/playlist\.m3u8$/,
    );
    expect(new URL('360p/video.m3u8', url).pathname).toBe(`/${segment}/guid-1/360p/video.m3u8`);
  });

  it('admits every file below the token path, and gives the path without the token back', () => {
    expect(readCdnPath(path, KEY, now)).toEqual({ path: '/guid-1/playlist.m3u8', token: 'valid' });
    expect(readCdnPath(`/${segment}/guid-1/360p/video0.ts`, KEY, now).token).toBe('valid');
  });

  it('is refused once expired, elsewhere, with another key, altered, or extended by hand', () => {
    expect(readCdnPath(path, KEY, EXPIRES).token).toBe('invalid');
    expect(readCdnPath(`/${segment}/guid-2/playlist.m3u8`, KEY, now).token).toBe('invalid');
    expect(readCdnPath(path, 'OtherKey', now).token).toBe('invalid');
    expect(readCdnPath(path.replace('HS256-', 'HS256-x'), KEY, now).token).toBe('invalid');
    expect(readCdnPath(path.replace(`${EXPIRES}`, `${EXPIRES + 1}`), KEY, now).token).toBe('invalid');
    expect(readCdnPath(path.replace('guid-1%2F', ''), KEY, now).token).toBe('invalid');
    expect(readCdnPath(`/${segment}/guid-1/%zz`, KEY, now).token).toBe('invalid');
  });

  it('is told apart from no token, and from one nobody checks', () => {
    expect(readCdnPath('/guid-1/playlist.m3u8', KEY, now).token).toBe('absent');
    expect(readCdnPath(path, undefined, now).token).toBe('unchecked');
  });
});
