import { join } from 'node:path';
import { expect, it } from 'vitest';
import { typesOf } from '../../../scripts/client/generate.ts';
import { startEdge } from './fixture.ts';

const SCHEMA = join(import.meta.dirname, '../../../lib/client/schema.d.ts');

it('the client’s types are those of the document that the edge serves (else: npm run generate:client)', async () => {
  const edge = await startEdge();
  try {
    const document = (await (await edge.call('GET', '/openapi.json')).json()) as object;
    await expect(await typesOf(document)).toMatchFileSnapshot(SCHEMA);
  } finally {
    await edge.close();
  }
});
