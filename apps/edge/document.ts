import type { OpenAPIHono } from '@hono/zod-openapi';
import type { EdgeEnv } from './router.ts';
import { shareProblems } from './shared-problems.ts';

/** Headers of answers and requests that many routes share, most of them set or read by the middleware of app.ts. */
export const COMPONENTS = {
  headers: {
    RequestId: {
      description: 'Names this request in the logs; the one that was sent, where it is a sane one.',
      schema: { type: 'string' },
      example: '7c1f0a52-6d0b-4b2e-9d0e-0d6a4c7c9b11',
    },
    RateLimit: {
      description:
        'What is left of the window, and for how many seconds it goes on (draft-ietf-httpapi-ratelimit-headers).',
      schema: { type: 'string' },
      example: '"token";r=598;t=42',
    },
    RateLimitPolicy: {
      description: 'How many requests a window of so many seconds has.',
      schema: { type: 'string' },
      example: '"token";q=600;w=60',
    },
    RetryAfter: {
      description: 'Seconds after which the same request may succeed; not told where that is not known.',
      schema: { type: 'integer', minimum: 0 },
      example: 1,
    },
    IdempotencyReplayed: {
      description: '`true` where this is what the first request with the same `Idempotency-Key` was answered.',
      schema: { type: 'string', const: 'true' },
      example: 'true',
    },
    WwwAuthenticate: { description: 'Which credential is wanted.', schema: { type: 'string' }, example: 'Bearer' },
    ETag: {
      description: 'Names this state; send it as `If-None-Match`.',
      schema: { type: 'string' },
      example: '"q7cDUk2XxH2mA5pK7w3sT1nYb0E"',
    },
  },
  parameters: {
    IdempotencyKey: {
      name: 'Idempotency-Key',
      in: 'header',
      description:
        'Any name of this request that the caller makes up. The same request with the same key is done once and answered ' +
        'again for a day; another request with it, or the same in another role, is refused. What was refused may be tried ' +
        'again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`.',
      schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
      example: '5f0c6c1e-publish-knee',
    },
    IfNoneMatch: {
      name: 'If-None-Match',
      in: 'header',
      description: 'The `ETag` that you know, or several.',
      schema: { type: 'string' },
      example: '"q7cDUk2XxH2mA5pK7w3sT1nYb0E"',
    },
  },
} as const;

const TAGS = [
  { name: 'Exercises', description: 'Source videos of one repetition, and the voice that counts along.' },
  { name: 'Programmes', description: 'What is prescribed: sessions of exercises with their doses, published as one.' },
  { name: 'Sessions', description: 'The clinic’s library, whose sessions programmes take copies of.' },
  { name: 'Renders', description: 'The videos that a publish asks for.' },
  { name: 'Assignments', description: 'Which patient a programme is for.' },
  { name: 'Patient', description: 'What a patient’s app asks.' },
  { name: 'Notifications', description: 'What somebody is to be told.' },
  { name: 'Webhooks', description: 'What the clinic’s own systems are told.' },
  { name: 'Bunny', description: 'What Bunny Stream calls.' },
  { name: 'Process', description: 'For load balancers and orchestrators.' },
];

/** The OpenAPI document of all routes that are in the app by now, with what they share described once. */
export function documentOf(app: OpenAPIHono<EdgeEnv>) {
  const { openAPIRegistry: registry } = app;
  registry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'Claims: `sub`, `role` (superadmin, manager, specialist, patient, ops) and, but for superadmin and ops, `org`.',
  });
  for (const [name, component] of Object.entries(COMPONENTS.headers)) {
    registry.registerComponent('headers', name, component);
  }
  for (const [name, component] of Object.entries(COMPONENTS.parameters)) {
    registry.registerComponent('parameters', name, component);
  }
  return shareProblems(
    app.getOpenAPI31Document({
      openapi: '3.1.0',
      info: {
        title: 'Bakehouse',
        version: '1',
        description:
          'Turns a clinic’s programme of exercises into video that plays. Errors are RFC 9457 problems with a stable `code`; ' +
          'what belongs to another organisation answers 404; every response carries an `X-Request-Id`.',
      },
      tags: TAGS,
    }),
  );
}
