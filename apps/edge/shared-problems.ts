import type { OpenAPIHono } from '@hono/zod-openapi';

type Document = ReturnType<OpenAPIHono['getOpenAPI31Document']>;
type Responses = NonNullable<NonNullable<Document['components']>['responses']>;

/**
 * The document with every problem that operations below `/v1` may answer described once, in its components: the same
 * codes, by whose names it is called there, are the same response. What an operation may answer stays told code by code,
 * and a client's types for it are a line each.
 */
export function shareProblems(document: Document): Document {
  const shared: Responses = {};
  const paths = Object.fromEntries(
    Object.entries(document.paths ?? {}).map(([path, item]) => [
      path,
      path.startsWith('/v1/') ? mapOperations(item, (responses) => shareAmong(responses, shared)) : item,
    ]),
  );
  return { ...document, paths, components: { ...document.components, responses: shared } };
}

type Item = NonNullable<Document['paths']>[string];

const mapOperations = (item: Item, change: (responses: Responses) => Responses): Item =>
  Object.fromEntries(
    Object.entries(item).map(([method, operation]) => [
      method,
      { ...operation, responses: change(operation.responses) },
    ]),
  );

/** Moves what is a problem into `shared`, and leaves a reference in its place. */
const shareAmong = (responses: Responses, shared: Responses): Responses =>
  Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const codes = codesOf(response);
      if (codes.length === 0) return [status, response];
      const name = nameOf(codes);
      const known = shared[name];
      if (known && JSON.stringify(known) !== JSON.stringify(response))
        throw new Error(`two problems are called ${name}`);
      shared[name] = response;
      return [status, { $ref: `#/components/responses/${name}` }];
    }),
  );

/** The codes that it has examples of; none where it is no problem. */
const codesOf = (response: Responses[string]): string[] =>
  Object.keys(('content' in response && response.content?.['application/problem+json']?.examples) || {}).sort();

/** `forbidden` is `Forbidden`, and of several it is `IdempotencyKeyReusedOrInvalidRequest`. */
const nameOf = (codes: readonly string[]): string =>
  codes.map((code) => code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())).join('Or');
