import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { AppError } from '../errors.ts';

export interface Address {
  address: string;
  family: 4 | 6;
}
export type Resolve = (host: string) => Promise<Address[]>;

export interface TargetRules {
  /** Any address and port, and http: for development, where receivers run on this machine. */
  allowPrivate: boolean;
  /** By default the system's name servers; in development also the hosts file. */
  resolve?: Resolve | undefined;
}

export interface TargetGuard {
  /** The URL, where it is of a kind that may be called at all; nothing is resolved. Throws `endpoint_url_refused`. */
  parse(text: string): URL;
  /**
   * The addresses of a host, each of which may be called. Who calls must connect to one of these and not resolve again:
   * the second answer of a name server may be another. Throws `endpoint_url_refused`, `endpoint_unresolved`.
   */
  addressesOf(host: string): Promise<Address[]>;
  /** Both, for the one who enters it. */
  check(text: string): Promise<void>;
}

/**
 * Public by its range, but answers from inside: Azure hands every machine its platform services at this address
 * (learn.microsoft.com, "What is IP address 168.63.129.16"). The metadata addresses of the others lie in private ranges.
 */
const PLATFORM_ADDRESSES = ['168.63.129.16'];

/** Global unicast (RFC 4291 §2.4): whatever IPv6 has been given outside of it is not the public net. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** Below lie the services that a clinic's server never is; 443 alone is for the web. */
const LOWEST_FREE_PORT = 1_024;

const RESOLVE_MS = 2_000;
const RESOLVE_TRIES = 2;

/** Whether an address belongs to the public net. Mapped, translated and tunnelled IPv4 does not, whatever is inside. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast' || PLATFORM_ADDRESSES.includes(parsed.toString())) return false;
  return parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST);
}

const refuse = (sentence: string): never => {
  throw new AppError('endpoint_url_refused', { sentence, issues: [{ path: 'url', message: sentence }] });
};

/**
 * Name servers are asked directly: getaddrinfo would hold one of the process's few threads for as long as a dead server
 * takes, and names of the hosts file are this machine's own.
 */
async function askNameServers(host: string): Promise<Address[]> {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  return [
    ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 as const })) : []),
    ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 as const })) : []),
  ];
}

const askSystem = async (host: string): Promise<Address[]> =>
  (await lookup(host, { all: true })).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));

/** Decides where webhooks may go: to the public net, over TLS, and to nothing that only this network reaches. */
export function createTargetGuard({ allowPrivate, resolve }: TargetRules): TargetGuard {
  const ask = resolve ?? (allowPrivate ? askSystem : askNameServers);

  const parse = (text: string): URL => {
    // Credentials would stand in our log of requests, and in that of whoever stands between.
    if (!URL.canParse(text)) return refuse('This is not a URL.');
    const url = new URL(text);
    if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) {
      return refuse('Webhooks are sent to https:// addresses only.');
    }
    if (url.username !== '' || url.password !== '') return refuse('The URL may hold no name and no password.');
    if (!allowPrivate && url.port !== '' && Number(url.port) < LOWEST_FREE_PORT) {
      return refuse(`The port is 443, or one from ${LOWEST_FREE_PORT} on.`);
    }
    const host = hostOf(url);
    if (!allowPrivate && isIP(host) !== 0 && !isPublic(host)) return refuse(NOT_PUBLIC);
    return url;
  };

  const addressesOf = async (host: string): Promise<Address[]> => {
    const family = isIP(host);
    const found: Address[] =
      family === 0 ? await ask(host).catch(() => []) : [{ address: host, family: family === 6 ? 6 : 4 }];
    if (found.length === 0) throw new AppError('endpoint_unresolved');
    // One that is not public is enough: which of them is connected to is decided elsewhere.
    if (!allowPrivate && !found.every(({ address }) => isPublic(address))) return refuse(NOT_PUBLIC);
    return found;
  };

  return {
    parse,
    addressesOf,
    check: async (text) => {
      await addressesOf(hostOf(parse(text)));
    },
  };
}

const NOT_PUBLIC = 'This address is not one of the public Internet.';

/** As it is connected to: without the brackets of an IPv6 address. */
const hostOf = (url: URL) => url.hostname.replace(/^\[(.*)\]$/, '$1');
