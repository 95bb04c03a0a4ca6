import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { AppError, toAppError } from '../errors.ts';
import type { TargetGuard } from './target.ts';

/** What a receiver answered; its body is read and forgotten. */
export interface Answer {
  status: number;
  /** How long it asked us to wait; undefined where it did not. */
  retryAfterMs: number | undefined;
}

/**
 * Posts a body once. Resolves with whatever was answered, redirects included, which are never followed. Throws
 * `endpoint_url_refused`, `endpoint_unresolved`, `endpoint_tls`, `endpoint_timeout`, `endpoint_unreachable`, or `aborted`
 * by the signal.
 */
export type Send = (url: string, headers: Record<string, string>, body: string, signal: AbortSignal) => Promise<Answer>;

export interface SendOptions {
  guard: TargetGuard;
  /** From the first question to the name server to the end of the answer. */
  timeoutMs: number;
}

/** More than any polite answer needs; what a hostile one sends beyond it is not read. */
const MOST_ANSWER_BYTES = 16 * 1_024;

export function createSender({ guard, timeoutMs }: SendOptions): Send {
  // Node resolves in here and connects to what it is answered: there is no second resolution. An address that stands in
  // the URL itself is never looked up, and is checked by `parse`.
  const lookup: LookupFunction = (host, options, callback) => {
    guard.addressesOf(host).then(
      (addresses) => {
        if (options.all) return callback(null, addresses);
        const [first] = addresses;
        callback(null, first?.address ?? '', first?.family);
      },
      (error: unknown) => callback(toAppError(error, 'endpoint_unresolved'), []),
    );
  };

  return async (text, headers, body, signal) => {
    const url = guard.parse(text);
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const options: RequestOptions = {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        'User-Agent': 'Bakehouse-Webhooks',
        ...headers,
      },
      lookup,
      // A connection of its own, checked anew: one that is kept was checked when the name meant something else.
      agent: false,
    };
    return new Promise<Answer>((resolve, reject) => {
      let answer: Answer | undefined;
      const sent = request(url, options);
      const end = (error?: AppError) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        sent.destroy();
        // Whoever has answered has taken it, or not, however the rest of the answer ends.
        if (answer) resolve(answer);
        else reject(error ?? new AppError('endpoint_unreachable'));
      };
      const timer = setTimeout(() => end(new AppError('endpoint_timeout')), timeoutMs);
      const abort = () => end(new AppError('aborted'));
      signal.addEventListener('abort', abort, { once: true });
      sent.on('error', (error) => end(meaningOf(error)));
      sent.on('response', (response) => {
        answer = { status: response.statusCode ?? 0, retryAfterMs: retryAfterOf(response) };
        let seen = 0;
        response.on('data', (chunk: Buffer) => {
          seen += chunk.byteLength;
          if (seen > MOST_ANSWER_BYTES) end();
        });
        response.on('error', () => end());
        response.on('close', () => end());
      });
      if (signal.aborted) abort();
      else sent.end(body);
    });
  };
}

/** In seconds, or as a date (RFC 9110 §10.2.3). */
function retryAfterOf({ headers }: IncomingMessage): number | undefined {
  const value = headers['retry-after'];
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** Codes of OpenSSL's verdicts on a certificate, as Node passes them on; the others begin with ERR_TLS or ERR_SSL. */
const CERTIFICATE = /^(ERR_TLS|ERR_SSL|EPROTO$|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET|VERIFY|DECODE)|INVALID_CA)/;

function meaningOf(error: Error): AppError {
  if (error instanceof AppError) return error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const kind = CERTIFICATE.test(code) ? 'endpoint_tls' : 'endpoint_unreachable';
  return new AppError(kind, { detail: code || error.name, cause: error });
}
