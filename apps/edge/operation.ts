import { createRoute, type RouteConfig, z } from '@hono/zod-openapi';
import { AppError, ERRORS, type ErrorCode, problemOf } from '../../lib/errors.ts';
import type { COMPONENTS } from './document.ts';
import { idempotent } from './idempotency.ts';

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().openapi({ description: 'Stable; the sentences are not.' }),
    errors: z.array(z.object({ path: z.string(), message: z.string(), code: z.string().optional() })).optional(),
  })
  .openapi('Problem', { description: 'RFC 9457 problem details.' });

/** One of the headers of answers that document.ts describes. */
export const header = (name: keyof typeof COMPONENTS.headers) => ({ $ref: `#/components/headers/${name}` });

/** One of the parameters that it describes. */
export const parameter = (name: keyof typeof COMPONENTS.parameters) => ({ $ref: `#/components/parameters/${name}` });

type Operation = Omit<RouteConfig, 'security'> & {
  /** What the generated clients call it. */
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  /** What its handler refuses; what all routes of its kind may answer is added. */
  problems: ErrorCode[];
};

/**
 * A route as `createRoute` takes it, which names only what is its own: what the middleware of app.ts does to every route
 * of its kind — token, limits, caps, request id — is documented here, once. Idempotency is added here, too: after the
 * route's own middleware, so that nobody is answered again what they may not ask for.
 */
export function operation<P extends string, R extends Operation & { path: P }>(given: R) {
  const { problems, ...route } = given;
  const guarded = route.path.startsWith('/v1/');
  const repeatable = guarded && route.method === 'post';
  const codes = [...new Set([...commonCodes(given), ...problems])].sort();
  const described = {
    ...route,
    ...(guarded && { security: [{ bearer: [] }] }),
    ...(repeatable && { middleware: [route.middleware ?? [], idempotent].flat() }),
    parameters: [...(repeatable ? [parameter('IdempotencyKey')] : []), ...(route.parameters ?? [])],
    responses: mapValues({ ...route.responses, ...answersOf(codes) }, (status, answer) => ({
      ...answer,
      headers: {
        'X-Request-Id': header('RequestId'),
        ...(guarded && { RateLimit: header('RateLimit'), 'RateLimit-Policy': header('RateLimitPolicy') }),
        ...(repeatable && status < 300 && { 'Idempotency-Replayed': header('IdempotencyReplayed') }),
        ...('headers' in answer && answer.headers),
      },
    })),
  };
  // Typed as it was given: handlers throw problems, they do not return them.
  return createRoute<P, R>(described as unknown as R);
}

/** What any route that wants a token may answer. */
const GUARDED: ErrorCode[] = ['unauthorized', 'forbidden', 'invalid_request', 'too_many_requests', 'unavailable'];

/** What all routes of this one's kind may answer. */
function commonCodes({ path, method, request }: Operation): ErrorCode[] {
  const guarded = path.startsWith('/v1/');
  const takesJson = Object.keys(request?.body?.content ?? {}).includes('application/json');
  return [
    'internal',
    ...(guarded ? GUARDED : []),
    ...(guarded && method === 'post'
      ? (['idempotency_key_reused', 'idempotency_under_way', 'idempotency_unknown'] as const)
      : []),
    ...(guarded && takesJson ? (['malformed_body', 'unsupported_media_type'] as const) : []),
    ...(guarded && method !== 'get' ? (['payload_too_large'] as const) : []),
  ];
}

/** One response for each status, with an example for each code: a problem that is not among them is a defect. */
function answersOf(codes: ErrorCode[]): RouteConfig['responses'] {
  const statuses = [...new Set(codes.map((code) => ERRORS[code].status))].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      const own = codes.filter((code) => ERRORS[code].status === status);
      const examples = Object.fromEntries(
        own.map((code) => [code, { value: problemOf(new AppError(code, EXAMPLES[code])) }]),
      );
      return [
        status,
        {
          description: own.map((code) => `\`${code}\`: ${ERRORS[code].sentence}`).join(' '),
          content: { 'application/problem+json': { schema: problemSchema.extend({ code: z.enum(own) }), examples } },
          headers: {
            ...(status === 401 && { 'WWW-Authenticate': header('WwwAuthenticate') }),
            ...(own.some((code) => ERRORS[code].retryable) && { 'Retry-After': header('RetryAfter') }),
          },
        },
      ];
    }),
  );
}

/** Where a problem is clearer with its parts. */
const EXAMPLES: { [Code in ErrorCode]?: { issues: { path: string; message: string; code?: string }[] } } = {
  invalid_request: { issues: [{ path: 'title', message: 'expects some text' }] },
  not_publishable: {
    issues: [{ path: 'sessions.0.items.1', message: ERRORS.source_missing.sentence, code: 'source_missing' }],
  },
};

const mapValues = (
  responses: RouteConfig['responses'],
  change: (status: number, answer: RouteConfig['responses'][string]) => RouteConfig['responses'][string],
): RouteConfig['responses'] =>
  Object.fromEntries(Object.entries(responses).map(([status, answer]) => [status, change(Number(status), answer)]));
