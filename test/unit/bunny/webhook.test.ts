import { describe, expect, it } from 'vitest';
import { parseWebhook, signWebhook, verifyWebhook } from '../../../lib/bunny/webhook.ts';

const body = Buffer.from(
  '{"IsLiveStreamWebhook":false,"VideoLibraryId":133,"VideoGuid":"657bb740-a71b-4529-a012-528021c31a92","Status":3}',
);
const KEY = 'read-only-key';
const signed = (changes: Record<string, string> = {}) => new Headers({ ...signWebhook(KEY, body), ...changes });

describe('verifyWebhook', () => {
  it('makes the signature that Bunny makes', () => {
    expect(signWebhook(KEY, body)).toEqual({
      'X-BunnyStream-Signature-Version': 'v1',
      'X-BunnyStream-Signature-Algorithm': 'hmac-sha256',
      'X-BunnyStream-Signature': 'ada53cc97f0d711e30ed0e6fe8d11babef10a050f2fac017e6ad4ab6b488201a',
    });
  });

  it('accepts a signature by any of the configured keys', () => {
    expect(verifyWebhook({ rawBody: body, headers: signed(), keys: ['new-key', KEY] })).toEqual({
      ok: true,
      by: 'signature',
    });
  });

  it('refuses other bytes, another key, another version, another algorithm and a malformed signature', () => {
    const verdict = (rawBody: Buffer, headers: Headers, keys = [KEY]) => verifyWebhook({ rawBody, headers, keys });
    expect(verdict(Buffer.concat([body, Buffer.from(' ')]), signed())).toEqual({ ok: false, reason: 'bad-signature' });
    expect(verdict(body, signed(), ['other'])).toEqual({ ok: false, reason: 'bad-signature' });
    expect(verdict(body, signed({ 'X-BunnyStream-Signature-Version': 'v2' }))).toEqual({
      ok: false,
      reason: 'unknown-scheme',
    });
    expect(verdict(body, signed({ 'X-BunnyStream-Signature-Algorithm': 'none' }))).toEqual({
      ok: false,
      reason: 'unknown-scheme',
    });
    for (const signature of ['', 'zz', 'ab'.repeat(31), 'ab'.repeat(33), 'AB'.repeat(32)]) {
      expect(verdict(body, signed({ 'X-BunnyStream-Signature': signature })).ok).toBe(false);
    }
  });

  it('refuses a delivery without the version and algorithm headers', () => {
    const headers = new Headers({ 'X-BunnyStream-Signature': signed().get('X-BunnyStream-Signature') ?? '' });
    expect(verifyWebhook({ rawBody: body, headers, keys: [KEY] })).toEqual({ ok: false, reason: 'unknown-scheme' });
  });

  it('lets the token in the address vouch for an unsigned delivery only', () => {
    const url = '/webhooks/bunnystream?token=shared-secret';
    const unsigned = { rawBody: body, headers: new Headers(), keys: [KEY], token: 'shared-secret' };
    expect(verifyWebhook({ ...unsigned, url })).toEqual({ ok: true, by: 'token' });
    expect(verifyWebhook({ ...unsigned, url: '/webhooks/bunnystream?token=wrong' }).ok).toBe(false);
    expect(verifyWebhook({ ...unsigned, url: '/webhooks/bunnystream' }).ok).toBe(false);
    const forged = signed({ 'X-BunnyStream-Signature': 'ab'.repeat(32) });
    expect(verifyWebhook({ ...unsigned, headers: forged, url })).toEqual({ ok: false, reason: 'bad-signature' });
  });

  it('accepts nothing where neither a key nor a token is configured', () => {
    const nothing = { rawBody: body, headers: signed(), keys: [], url: '/?token=' };
    expect(verifyWebhook(nothing)).toEqual({ ok: false, reason: 'unsigned' });
    expect(verifyWebhook({ ...nothing, token: '' }).ok).toBe(false);
  });
});

describe('parseWebhook', () => {
  it('reads the event and lets unknown fields pass', () => {
    const wider = Buffer.from('{"VideoLibraryId":133,"VideoGuid":"abc","Status":4,"Extra":{"a":1}}');
    expect(parseWebhook(wider)).toEqual({ libraryId: 133, guid: 'abc', status: 4, liveStream: false });
  });

  it('answers undefined for what is no event', () => {
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"VideoGuid":"a","Status":3}',
      '{"VideoLibraryId":1,"VideoGuid":"a","Status":"3"}',
    ]) {
      expect(parseWebhook(Buffer.from(text))).toBeUndefined();
    }
    expect(parseWebhook(Buffer.from([0xff, 0xfe, 0x00]))).toBeUndefined();
  });
});
