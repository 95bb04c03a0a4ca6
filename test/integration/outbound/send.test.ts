import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '../../../lib/errors.ts';
import { createSender } from '../../../lib/outbound/send.ts';
import { type Address, createTargetGuard, type TargetRules } from '../../../lib/outbound/target.ts';
import { built } from '../../support/built.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});
const receive = async (): Promise<Receiver> => {
  const receiver = await startReceiver();
  opened.push(receiver.close);
  return receiver;
};

const never = new AbortController().signal;
/** Sends once; answers the status, or the code of the failure. */
const send = async (url: string, rules: TargetRules, { timeoutMs = 5_000, signal = never } = {}) => {
  try {
    const post = createSender({ guard: createTargetGuard(rules), timeoutMs });
    return (await post(url, { 'webhook-id': 'id-1' }, '{}', signal)).status;
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
};
/** A name server that gives one answer after the other, and counts the questions. */
const nameServer = (...answers: string[]) => {
  let asked = 0;
  const resolve = async (): Promise<Address[]> => {
    const address = answers[Math.min(asked++, answers.length - 1)] ?? '';
    return [{ address, family: address.includes(':') ? 6 : 4 }];
  };
  return { resolve, asked: () => asked };
};
/** As `send`, in a process that trusts this certificate, too: Node reads those once, when it starts. */
async function sendTrusting(certificate: string, urls: readonly string[]): Promise<unknown> {
  const file = join(await makeTempDir(), 'trusted.pem');
  await writeFile(file, certificate);
  const lib = (name: string) => JSON.stringify(built(`lib/outbound/${name}.ts`));
  const script = `
    import { createSender } from ${lib('send')};
    import { createTargetGuard } from ${lib('target')};
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const post = createSender({ guard: createTargetGuard({ allowPrivate: true, resolve }), timeoutMs: 5_000 });
    const answers = [];
    for (const url of ${JSON.stringify(urls)})
      answers.push(await post(url, {}, '{}', new AbortController().signal).then(({ status }) => status, ({ code }) => code));
    console.log(JSON.stringify(answers));`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await execa(process.execPath, args, { env: { NODE_EXTRA_CA_CERTS: file } });
  return JSON.parse(stdout);
}
const HERE = { allowPrivate: true };
const portOf = (url: string) => new URL(url).port;

describe('a name that means the public Internet when it is entered and the inner network when it is called', () => {
  it('is refused at the call: nothing is connected to', async () => {
    const receiver = await receive();
    const { resolve } = nameServer('8.8.8.8', '127.0.0.1');
    const rules = { allowPrivate: false, resolve };
    const url = `https://rebind.test:${portOf(receiver.url)}/`;
    await createTargetGuard(rules).check(url);
    expect(await send(url, rules)).toBe('endpoint_url_refused');
    expect(receiver.received).toEqual([]);
  });

  it('is asked for once a call, and the connection goes to the very address that was judged', async () => {
    const receiver = await receive();
    const names = nameServer('127.0.0.1', '192.0.2.1');
    const host = `clinic.test:${portOf(receiver.url)}`;
    expect(await send(`http://${host}/hook`, { ...HERE, resolve: names.resolve })).toBe(204);
    expect(names.asked()).toBe(1);
    expect(receiver.received[0]?.headers).toMatchObject({ host, 'webhook-id': 'id-1' });
  });
});

describe('an address that stands in the URL', () => {
  it.each(['https://127.0.0.1:1024/', 'https://[::1]:1024/', 'https://169.254.169.254/'])(
    '%s is refused though no name server is asked',
    async (url) => {
      const names = nameServer('8.8.8.8');
      expect(await send(url, { allowPrivate: false, resolve: names.resolve })).toBe('endpoint_url_refused');
      expect(names.asked()).toBe(0);
    },
  );
});

describe('a receiver', () => {
  it('that is not there, hangs up, or speaks no HTTP is unreachable', async () => {
    expect(await send('http://127.0.0.1:9/', HERE)).toBe('endpoint_unreachable');
    for (const talk of ['', 'SSH-2.0-OpenSSH_9.6\r\n']) {
      const server = createServer((socket) => socket.end(talk)).listen(0, '127.0.0.1');
      opened.push(() => server.close());
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      expect(await send(`http://127.0.0.1:${port}/`, HERE)).toBe('endpoint_unreachable');
    }
  });

  it('that says nothing is given up in time', async () => {
    const receiver = await receive();
    receiver.answer = () => undefined;
    expect(await send(receiver.url, HERE, { timeoutMs: 100 })).toBe('endpoint_timeout');
  });

  it('whose name server says nothing is given up in time, too', async () => {
    const rules = { ...HERE, resolve: () => new Promise<never>(() => undefined) };
    expect(await send('http://clinic.test/', rules, { timeoutMs: 100 })).toBe('endpoint_timeout');
  });

  it('whose name nobody knows is unresolved', async () => {
    expect(await send('http://no-such-host.invalid/', HERE)).toBe('endpoint_unresolved');
  });

  it('with a certificate that nobody vouches for, or that is of another name, gets nothing', async () => {
    let requests = 0;
    const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (_, response) => {
      requests += 1;
      response.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    opened.push(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { resolve } = nameServer('127.0.0.1');
    expect(await send(`https://clinic.test:${port}/`, { ...HERE, resolve })).toBe('endpoint_tls');
    expect(requests).toBe(0);
    const urls = ['clinic.test', 'other.test', '127.0.0.1'].map((host) => `https://${host}:${port}/`);
    expect(await sendTrusting(CERTIFICATE, urls)).toEqual([204, 'endpoint_tls', 'endpoint_tls']);
    expect(requests).toBe(1);
  });

  it('is left at once where the sender is told to stop', async () => {
    const receiver = await receive();
    const stop = new AbortController();
    receiver.answer = () => stop.abort();
    expect(await send(receiver.url, HERE, { timeoutMs: 60_000, signal: stop.signal })).toBe('aborted');
    expect(await send(receiver.url, HERE, { signal: stop.signal })).toBe('aborted');
    expect(receiver.received).toHaveLength(1);
  });
});

/** Of clinic.test, signed by itself; good for a hundred years and for nothing. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgIfbLt+Zr6DBObKtD
LJfWPVgwbDQvpcxfanwVjBBhXRKhRANCAAQxQm6dpawtV7OwmNnylOOa4zeD2a3B
alANZs4uYJ94Yb3bfGDjF5Gx1zUQ1Cf6HFjatO7Omzw5NByr0MWXWRRv
-----END PRIVATE KEY-----`;
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBRzCB7qADAgECAgEBMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2NsaW5pYy50
ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAWMRQwEgYDVQQD
DAtjbGluaWMudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDFCbp2lrC1X
s7CY2fKU45rjN4PZrcFqUA1mzi5gn3hhvdt8YOMXkbHXNRDUJ/ocWNq07s6bPDk0
HKvQxZdZFG+jKzApMBYGA1UdEQQPMA2CC2NsaW5pYy50ZXN0MA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgUYF9Nyaq46Ngppc/VgTDjfENDlgnqzdC
5f8tDcNDoXkCIQD3x0dyJG5qaC/qrc2H+kn6eIncdy21MLvASkA6rHnLHA==
-----END CERTIFICATE-----`;
