import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../lib/errors.ts';
import { createTargetGuard, isPublic } from '../../../lib/outbound/target.ts';

const INNER = [
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['this network', '0.0.0.0'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['carrier-grade NAT', '100.64.0.1'],
  ['carrier-grade NAT', '100.100.100.200'],
  ['link-local, where metadata lies', '169.254.169.254'],
  ['Azure’s platform', '168.63.129.16'],
  ['protocol assignments', '192.0.0.192'],
  ['documentation', '192.0.2.1'],
  ['documentation', '198.51.100.7'],
  ['benchmarking', '198.18.0.1'],
  ['6to4 relays', '192.88.99.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['IPv6 loopback', '::1'],
  ['IPv6 unspecified', '::'],
  ['IPv4-mapped', '::ffff:8.8.8.8'],
  ['IPv4-mapped', '::ffff:127.0.0.1'],
  ['IPv4-compatible', '::8.8.8.8'],
  ['NAT64', '64:ff9b::a00:1'],
  ['local NAT64', '64:ff9b:1::a00:1'],
  ['6to4', '2002:7f00:1::'],
  ['Teredo', '2001::1'],
  ['unique local, where AWS’ metadata lies', 'fd00:ec2::254'],
  ['IPv6 link-local', 'fe80::1'],
  ['site-local', 'fec0::1'],
  ['IPv6 multicast', 'ff02::1'],
  ['IPv6 documentation', '2001:db8::1'],
  ['IPv6 documentation', '3fff::1'],
  ['discard', '100::1'],
  ['nothing anybody was given', '4000::1'],
  ['no address', 'localhost'],
] as const;
const PUBLIC = ['8.8.8.8', '93.184.215.14', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450:4001::200e'];

describe('an address', () => {
  it.each(INNER)('of %s (%s) is not public', (_, address) => {
    expect(isPublic(address)).toBe(false);
  });

  it.each(PUBLIC)('%s is public', (address) => {
    expect(isPublic(address)).toBe(true);
  });

  it('of IPv4 is judged by no other way of writing it in IPv6', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(isPublic(`::ffff:${address}`)).toBe(false);
        expect(isPublic(`64:ff9b::${address}`)).toBe(false);
      }),
    );
  });
});

const answering = (...addresses: string[]) => ({
  allowPrivate: false,
  resolve: async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }) as const),
});
const refusalOf = async (work: () => Promise<unknown>) => {
  try {
    await work();
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return 'allowed';
};

describe('a target', () => {
  it.each([
    ['https://clinic.test/hook', 'allowed'],
    ['https://clinic.test:443/hook', 'allowed'],
    ['https://clinic.test:8443/', 'allowed'],
    ['https://clinic.test:80/', 'endpoint_url_refused'],
    ['https://clinic.test:25/', 'endpoint_url_refused'],
    ['http://clinic.test/', 'endpoint_url_refused'],
    ['https://name@clinic.test/', 'endpoint_url_refused'],
    ['https://:word@clinic.test/', 'endpoint_url_refused'],
    ['file:///etc/passwd', 'endpoint_url_refused'],
    ['gopher://clinic.test/', 'endpoint_url_refused'],
    ['//clinic.test/', 'endpoint_url_refused'],
    ['', 'endpoint_url_refused'],
    ['https://', 'endpoint_url_refused'],
    ['https://8.8.8.8/', 'allowed'],
    // A URL parser's many ways to write 127.0.0.1 and 169.254.169.254.
    ['https://127.1/', 'endpoint_url_refused'],
    ['https://2130706433/', 'endpoint_url_refused'],
    ['https://0x7f.0.0.1/', 'endpoint_url_refused'],
    ['https://0177.0.0.1/', 'endpoint_url_refused'],
    ['https://①②⑦.0.0.1/', 'endpoint_url_refused'],
    ['https://0xa9fea9fe/', 'endpoint_url_refused'],
    ['https://[::1]/', 'endpoint_url_refused'],
    ['https://[::ffff:a9fe:a9fe]/', 'endpoint_url_refused'],
    ['https://[64:ff9b::169.254.169.254]/', 'endpoint_url_refused'],
  ])('%s is %s', async (url, verdict) => {
    const guard = createTargetGuard(answering('8.8.8.8'));
    expect(await refusalOf(() => guard.check(url))).toBe(verdict);
  });

  it.each(INNER)('whose name means an address of %s (%s) is refused', async (_, address) => {
    const guard = createTargetGuard(answering(address));
    expect(await refusalOf(() => guard.check('https://clinic.test/'))).toBe('endpoint_url_refused');
  });

  it('is refused for one inner address among public ones', async () => {
    for (const addresses of [
      ['8.8.8.8', '10.0.0.1'],
      ['::1', '2606:4700::1111'],
    ]) {
      const guard = createTargetGuard(answering(...addresses));
      expect(await refusalOf(() => guard.check('https://clinic.test/'))).toBe('endpoint_url_refused');
    }
  });

  it('whose name nobody knows is said to be unknown', async () => {
    expect(await refusalOf(() => createTargetGuard(answering()).check('https://clinic.test/'))).toBe(
      'endpoint_unresolved',
    );
    const failing = { allowPrivate: false, resolve: () => Promise.reject(new Error('SERVFAIL')) };
    expect(await refusalOf(() => createTargetGuard(failing).check('https://clinic.test/'))).toBe('endpoint_unresolved');
  });

  it('of the inner network, over http and on any port is fine where development says so', async () => {
    const guard = createTargetGuard({ allowPrivate: true });
    for (const url of ['http://127.0.0.1:80/', 'http://localhost:1/', 'https://[::1]:22/']) {
      expect(await refusalOf(() => guard.check(url))).toBe('allowed');
    }
    expect(await refusalOf(() => guard.check('ftp://127.0.0.1/'))).toBe('endpoint_url_refused');
    expect(await refusalOf(() => guard.check('http://a:b@127.0.0.1/'))).toBe('endpoint_url_refused');
  });
});
