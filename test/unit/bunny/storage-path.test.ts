import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeStoragePath } from '../../../lib/bunny/storage-path.ts';

describe('encodeStoragePath', () => {
  it('encodes names and keeps the slashes between them', () => {
    expect(encodeStoragePath('renders/a b/é#?.json')).toBe('renders/a%20b/%C3%A9%23%3F.json');
  });

  it('refuses paths that could reach, or delete, something else', () => {
    for (const path of [
      '',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      'a/../b',
      'a/./b',
      '../a',
      'a\\..\\b',
      'a/b\u0000c',
      'a/\nb',
      ' a',
      'a /b',
      'x'.repeat(6001),
      'a\ud800',
    ]) {
      expect(() => encodeStoragePath(path), JSON.stringify(path)).toThrow(
        expect.objectContaining({ code: 'storage_failed', retryable: false }),
      );
    }
  });

  it('gives, for any path it accepts, a URL path that resolves to exactly that path below the zone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (path) => {
        let encoded: string;
        try {
          encoded = encodeStoragePath(path);
        } catch {
          return;
        }
        const { pathname, search, hash } = new URL(`http://host/zone/${encoded}`);
        expect(pathname).toBe(`/zone/${encoded}`);
        expect(decodeURIComponent(pathname)).toBe(`/zone/${path}`);
        expect(search + hash).toBe('');
      }),
    );
  });
});
