import openapiTypeScript, { astToString, type OpenAPI3 } from 'openapi-typescript';
import ts from 'typescript';

const BLOB = ts.factory.createTypeReferenceNode('Blob');

const HEAD = `/**
 * Made of the OpenAPI document by \`npm run generate:client\`; a test fails where it is not what that would make.
 */

`;

/** The TypeScript types of an OpenAPI document, as the source of a module. */
export async function typesOf(document: object): Promise<string> {
  const nodes = await openapiTypeScript(briefly(document), {
    // What has a default may be left out of a request.
    defaultNonNullable: false,
    transform: ({ format }) => (format === 'binary' ? BLOB : undefined),
  });
  return `${HEAD}${astToString(nodes)}`;
}

/** The headers of an answer are read as text from the `Response`, and examples are for the reader of the document. */
const LEFT_OUT = new Set(['headers', 'example', 'examples']);

/** With all of it there would be a hundred lines of types for each line of use. */
const briefly = (document: object): OpenAPI3 =>
  JSON.parse(JSON.stringify(document), (key, value) => (LEFT_OUT.has(key) ? undefined : value));
