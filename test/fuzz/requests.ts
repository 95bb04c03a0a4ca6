import fc from 'fast-check';
import type { DescribedOperation, Document, Parameter } from '../support/openapi.ts';
import { oddText, spoiled, valuesOf } from './values.ts';

export const CALLERS = [
  ...['superadmin', 'superadmin', 'manager', 'manager', 'manager', 'manager', 'manager'],
  ...['specialist', 'specialist', 'specialist', 'specialist', 'patient', 'patient', 'patient', 'patient'],
  ...['ops', 'otherManager', 'otherPatient', 'nobody', 'liar'],
] as const;
export type CallerName = (typeof CALLERS)[number];

export const FILES = ['nothing', 'garbage', 'garbage', 'half a video', 'video', 'sound', 'too much'] as const;

export type PlannedBody =
  | { kind: 'none' }
  | { kind: 'text'; text: string; type: string | null }
  | { kind: 'file'; name: (typeof FILES)[number] };

/** A request before the things that are known (`<program:3>`) have their ids. */
export interface PlannedRequest {
  operation: DescribedOperation;
  caller: CallerName;
  path: Record<string, string>;
  query: [string, string][];
  headers: Record<string, string>;
  body: PlannedBody;
}

/** What the `id` of a path names, by the path's beginning. */
const KINDS: Record<string, string> = {
  exercises: 'exercise',
  programs: 'program',
  sessions: 'session',
  renders: 'render',
  notifications: 'notification',
  'webhook-endpoints': 'endpoint',
};
/** What other names stand for. */
const NAMES: Record<string, string> = {
  exerciseId: 'exercise',
  sessionId: 'librarySession',
  deliveryId: 'delivery',
  orgId: 'org',
  cursor: 'program',
  patientId: 'patient',
  token: 'webhookToken',
  url: 'hook',
};
/** An answer that is waited for costs the run its time and shows nothing more. */
const SHORT: Record<string, fc.Arbitrary<unknown>> = { wait: fc.constantFrom(0, 0, 0, 1) };

/** Stands for a key that is made of the request. */
export const OWN_KEY = '<own>';

const seldom = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>, weight = 7) =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd });

/** Nothing `none` times as often as something. */
const perhaps = <T>(something: fc.Arbitrary<T>, none: number) =>
  fc.oneof({ weight: none, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: something });

/** Requests of one operation: most fit the document, some nearly, some not at all. */
export function requestsOf(document: Document, operation: DescribedOperation): fc.Arbitrary<PlannedRequest> {
  const resource = operation.path.split('/')[2] ?? '';
  const kindOf = (name: string) => (name === 'id' ? (KINDS[resource] ?? '') : (NAMES[name] ?? ''));
  const textsOf = ({ name, schema }: Parameter) =>
    (SHORT[name] ?? valuesOf(document, schema, kindOf, name)).map(String);
  const placed = (place: Parameter['in']) => operation.parameters.filter((parameter) => parameter.in === place);

  const path = fc.record(
    Object.fromEntries(placed('path').map((parameter) => [parameter.name, seldom(textsOf(parameter), oddText, 9)])),
  );
  const query = fc
    .tuple(
      ...placed('query').map((parameter) =>
        perhaps(
          seldom(textsOf(parameter), oddText).map((value): [string, string] => [parameter.name, value]),
          1,
        ),
      ),
      perhaps(fc.tuple(fc.constantFrom('limit', 'x', '__proto__', '%00'), oddText), 12),
    )
    .map((pairs) => pairs.filter((pair) => pair !== null));
  const headers = fc.record(
    {
      'x-request-id': fc.constantFrom('a-name', 'x'.repeat(300), 'ü'),
      ...(operation.method === 'POST' && {
        // Most have none; the same request with its own key is answered again, another one's key is refused.
        'idempotency-key': fc.constantFrom(
          ...Array(14).fill(null),
          OWN_KEY,
          OWN_KEY,
          'key',
          'a b',
          'ü',
          'k'.repeat(256),
        ),
      }),
      ...(placed('header').some(({ name }) => name === 'If-None-Match') && {
        'if-none-match': fc.constantFrom('*', '"known"', 'W/"x", "y"', 'ü'),
        accept: fc.constantFrom('text/event-stream', 'application/json', '*/*'),
      }),
    },
    { requiredKeys: [] },
  );
  return fc
    .tuple(fc.constantFrom(...CALLERS), path, query, headers, bodiesOf(document, operation, kindOf))
    .map(([caller, path, query, headers, body]) => ({
      operation,
      caller,
      path,
      query,
      headers: withoutNull(headers),
      body,
    }));
}

/** The example with things that are there in the place of those of its story. */
const acquainted = (example: unknown, kindOf: (name: string) => string, at: number): unknown =>
  JSON.parse(JSON.stringify(example), (key, value) =>
    typeof value === 'string' && kindOf(key) !== '' ? `<${kindOf(key)}:${at}>` : value,
  );

const withoutNull = (headers: Record<string, string | null>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter((header): header is [string, string] => header[1] !== null));

function bodiesOf(
  document: Document,
  { method, requestBody }: DescribedOperation,
  kindOf: (name: string) => string,
): fc.Arbitrary<PlannedBody> {
  const none = fc.constant<PlannedBody>({ kind: 'none' });
  const content = requestBody?.content ?? {};
  if ('application/octet-stream' in content) {
    return fc.constantFrom(...FILES).map((name): PlannedBody => ({ kind: 'file', name }));
  }
  const media = content['application/json'];
  const text = (text: fc.Arbitrary<string>, type: fc.Arbitrary<string | null>): fc.Arbitrary<PlannedBody> =>
    fc.tuple(text, type).map(([text, type]) => ({ kind: 'text', text, type }));
  const nonsense = text(
    fc.constantFrom('', '{', 'null', '[]', '"text"', '\u0000', '{"a":1e999}', '['.repeat(5_000), ' '.repeat(300_000)),
    fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'multipart/form-data', null),
  );
  if (!media) return method === 'GET' ? none : seldom(none, nonsense, 9);
  const fitting = fc.oneof(
    { weight: 2, arbitrary: valuesOf(document, media.schema, kindOf) },
    { weight: 1, arbitrary: fc.nat(999).map((at) => acquainted(media.example, kindOf, at)) },
  );
  const json = fc.oneof({ weight: 3, arbitrary: fitting }, { weight: 2, arbitrary: spoiled(fitting) });
  return fc.oneof(
    {
      weight: 12,
      arbitrary: text(
        json.map((value) => JSON.stringify(value)),
        fc.constant('application/json'),
      ),
    },
    { weight: 1, arbitrary: nonsense },
    { weight: 1, arbitrary: none },
  );
}

/** As many requests as are asked for, the same ones for the same seed; uploads are fewer, for each starts ffprobe. */
export function planOf(
  document: Document,
  operations: DescribedOperation[],
  seed: number,
  count: number,
): PlannedRequest[] {
  const weightOf = ({ method, path }: DescribedOperation) => (method === 'PUT' ? 2 : path.startsWith('/v1/') ? 3 : 1);
  const any = fc.oneof(
    ...operations.map((operation) => ({ weight: weightOf(operation), arbitrary: requestsOf(document, operation) })),
  );
  // Each for itself, and without a bias to small values that grows: the last is as likely to be odd as the first.
  return fc.sample(fc.noBias(any), { seed, numRuns: count });
}
