import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERRORS, isErrorCode } from '../../../lib/errors.ts';
import {
  createJudge,
  type DescribedOperation,
  type Document,
  type MediaType,
  operationsOf,
} from '../../support/openapi.ts';
import { startEdge, type TestEdge } from './fixture.ts';

let edge: TestEdge;
let document: Document;
let operations: DescribedOperation[];

beforeAll(async () => {
  edge = await startEdge();
  document = (await (await edge.call('GET', '/openapi.json')).json()) as Document;
  operations = operationsOf(document);
});
afterAll(() => edge.close());

const nameOf = ({ method, path }: DescribedOperation) => `${method} ${path}`;
const isGuarded = ({ path }: DescribedOperation) => path.startsWith('/v1/');
const isPost = ({ method }: DescribedOperation) => method === 'POST';

/** The operations of which `holds` is not true, by name: an empty list where all is well. */
const lacking = (holds: (operation: DescribedOperation) => boolean, of = operations) =>
  of.filter((operation) => !holds(operation)).map(nameOf);

const answersOf = (operation: DescribedOperation) =>
  Object.entries(operation.responses).map(([status, answer]) => ({ status: Number(status), ...answer }));

const valuesOf = ({ example, examples }: MediaType) =>
  examples ? Object.values(examples).map(({ value }) => value) : example === undefined ? [] : [example];

describe('every operation of the document', () => {
  it('has a name of its own, a summary, a description, and tags that are explained', () => {
    const known = document.tags.map(({ name }) => name);
    expect(lacking(({ summary, description }) => Boolean(summary && description))).toEqual([]);
    expect(lacking(({ tags }) => tags?.length === 1 && known.includes(tags[0] ?? ''))).toEqual([]);
    expect(lacking(({ operationId }) => /^[a-z][A-Za-z]+$/.test(operationId ?? ''))).toEqual([]);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  });

  it('shows examples of its parameters, its body and all its answers, and each fits its schema', () => {
    const judge = createJudge(document);
    const faults: string[] = [];
    const hold = (what: string, media: MediaType) => {
      const values = valuesOf(media);
      if (values.length === 0) faults.push(`${what} has no example`);
      for (const value of values) {
        const fault = judge(media.schema, value);
        if (fault !== null) faults.push(`${what}: ${fault}`);
      }
    };
    for (const operation of operations) {
      const name = nameOf(operation);
      for (const { name: parameter, schema, example } of operation.parameters) {
        hold(`${name} ${parameter}`, { schema, example: example ?? schema.example });
      }
      for (const media of Object.values(operation.requestBody?.content ?? {})) hold(`the body of ${name}`, media);
      for (const { status, content } of answersOf(operation)) {
        for (const [type, media] of Object.entries(content ?? {})) hold(`${status} ${type} of ${name}`, media);
      }
    }
    for (const [name, header] of Object.entries(document.components.headers)) hold(`the header ${name}`, header);
    expect(faults).toEqual([]);
  });

  it('says what its parameters mean, where their names do not', () => {
    const plain = ['id', 'language', 'name'];
    const mute = ({ parameters }: DescribedOperation) =>
      parameters.every(
        ({ name, description, schema }) => plain.includes(name) || description || 'description' in schema,
      );
    expect(lacking(mute)).toEqual([]);
  });

  it('answers errors as problems only, with an example for each code that fits its status', () => {
    const faults = operations.flatMap((operation) =>
      answersOf(operation)
        .filter(({ status }) => status >= 400)
        .flatMap(({ status, content }) => {
          const { 'application/problem+json': problem, ...others } = content ?? {};
          // The state of the process is told in the body, whatever the status.
          if (operation.path === '/readyz' && status === 503) return [];
          const codes = Object.keys(problem?.examples ?? {});
          const fits = codes.length > 0 && codes.every((code) => isErrorCode(code) && ERRORS[code].status === status);
          return fits && Object.keys(others).length === 0 ? [] : [`${status} of ${nameOf(operation)}`];
        }),
    );
    expect(faults).toEqual([]);
  });

  it('below /v1 may be refused for want of a token, a right, a fitting request, patience or a database', () => {
    const holds = ({ responses }: DescribedOperation) =>
      ['401', '403', '422', '429', '500', '503'].every((status) => status in responses);
    expect(lacking(holds, operations.filter(isGuarded))).toEqual([]);
  });

  it('that takes JSON may be sent another type, nonsense, or too much', () => {
    const takesJson = operations.filter(
      (operation) => isGuarded(operation) && 'application/json' in (operation.requestBody?.content ?? {}),
    );
    expect(takesJson.length).toBeGreaterThan(5);
    const holds = ({ responses }: DescribedOperation) => ['400', '413', '415'].every((status) => status in responses);
    expect(lacking(holds, takesJson)).toEqual([]);
  });

  it('names the headers of its answers', () => {
    const headersOf = (answer: { headers?: Record<string, object> }) => Object.keys(answer.headers ?? {});
    const wanted = (operation: DescribedOperation, status: number) => [
      'X-Request-Id',
      ...(isGuarded(operation) ? ['RateLimit', 'RateLimit-Policy'] : []),
      ...(isGuarded(operation) && isPost(operation) && status < 300 ? ['Idempotency-Replayed'] : []),
      ...(status === 401 ? ['WWW-Authenticate'] : []),
      ...(status === 429 ? ['Retry-After'] : []),
      ...(status === 304 ? ['ETag'] : []),
    ];
    const faults = operations.flatMap((operation) =>
      answersOf(operation)
        .filter((answer) => !wanted(operation, answer.status).every((name) => headersOf(answer).includes(name)))
        .map(({ status }) => `${status} of ${nameOf(operation)}`),
    );
    expect(faults).toEqual([]);
  });

  it('that is a POST below /v1 takes an Idempotency-Key', () => {
    const posts = operations.filter((operation) => isGuarded(operation) && isPost(operation));
    expect(posts.length).toBeGreaterThan(5);
    const holds = ({ parameters, responses }: DescribedOperation) =>
      parameters.some(({ name }) => name === 'Idempotency-Key') && '409' in responses;
    expect(lacking(holds, posts)).toEqual([]);
  });
});
