import fc from 'fast-check';
import type { Document, Schema } from '../support/openapi.ts';

/** What a request may hold that nobody meant: each has broken a service somewhere. */
const ODD: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 2 ** 31, 2 ** 53, -1e308, '', ' ', '0', '1e3', 'Infinity', 'null', 'not-an-id'],
  ...[
    '\u0000',
    'a\u0000b',
    'line\nbreak',
    '\ud800',
    '\u202e',
    '🏋️‍♀️ Knie­beuge ʼ',
    'א',
    'İ',
    'x'.repeat(40),
    'y'.repeat(5_000),
  ],
  ...[
    "'; drop table programs; --",
    '{{id}}',
    '$1',
    '%',
    '\\',
    '../..',
    '__proto__',
    '2026-02-30T00:00:00Z',
    'en-',
    'x-klingon',
  ],
  ...['0199F2C1-7B1E-7C35-9A34-2F4F1D6B8A10', '00000000-0000-0000-0000-000000000000'],
  ...[[], {}, [null], [[[[[[]]]]]], JSON.parse('{"__proto__":{"role":"superadmin"}}'), { constructor: 1 }],
  ...[Array.from({ length: 1_001 }, () => ({}))],
];

export const oddValue = fc.constantFrom(...ODD);

/** Odd text as a part of an address or a header. */
export const oddText = fc.oneof(
  fc.constantFrom(...ODD.filter((value) => typeof value === 'string' && value !== '' && !/[.]{2}/.test(value))),
  fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }),
) as fc.Arbitrary<string>;

/** Something that is there: resolved when it is sent, since what requests make joins it. */
export const known = (kind: string): fc.Arbitrary<string> => fc.nat(999).map((at) => `<${kind}:${at}>`);

const resolved = (document: Document, schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});

/** Values that fit a schema as far as it tells; `kindOf` says which known things a name stands for. */
export function valuesOf(
  document: Document,
  given: Schema,
  kindOf: (name: string) => string,
  name = '',
): fc.Arbitrary<unknown> {
  const schema = resolved(document, given);
  const of = (part: Schema, partName = name) => valuesOf(document, part, kindOf, partName);
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return fc.oneof(...choices.map((choice) => of(choice)));
  if (schema.allOf) {
    return fc.tuple(...schema.allOf.map((part) => of(part))).map((parts) => Object.assign({}, ...(parts as object[])));
  }
  const { type } = schema;
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => of({ ...schema, type: one })));
  switch (type) {
    case 'string':
      return textOf(schema, kindOf(name));
    case 'integer':
      return fc.integer({ min: bounded(schema.minimum, -9), max: bounded(schema.maximum, 999) });
    case 'number':
      return fc
        .integer({ min: bounded(schema.minimum, -9) * 10, max: bounded(schema.maximum, 99) * 10 })
        .map((tenths) => tenths / 10);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(of(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(3, schema.maxItems ?? 3),
      });
    case 'object':
      return objectOf(schema, of);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

const bounded = (value: number | undefined, otherwise: number) =>
  value === undefined || Math.abs(value) > 1e9 ? otherwise : value;

function textOf({ format, pattern, minLength = 0, maxLength = 40 }: Schema, kind: string): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.oneof({ weight: 9, arbitrary: known(kind) }, { weight: 1, arbitrary: fc.uuid() });
  if (format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  const plain = fc.string({ minLength: Math.max(1, minLength), maxLength: Math.min(40, maxLength) });
  return kind === '' ? plain : fc.oneof({ weight: 3, arbitrary: known(kind) }, { weight: 1, arbitrary: plain });
}

function objectOf(schema: Schema, of: (part: Schema, name?: string) => fc.Arbitrary<unknown>): fc.Arbitrary<object> {
  const fields = Object.entries(schema.properties ?? {}).map(([name, part]) => [name, of(part, name)] as const);
  const record = fc.record(Object.fromEntries(fields), { requiredKeys: schema.required ?? [] });
  if (typeof schema.additionalProperties !== 'object') return record;
  const more = fc.dictionary(
    schema.propertyNames ? (of(schema.propertyNames) as fc.Arbitrary<string>) : fc.string({ minLength: 1 }),
    of(schema.additionalProperties),
    { maxKeys: 3 },
  );
  return fc.tuple(record, more).map(([known, others]) => ({ ...others, ...known }));
}

type Place = { holder: Record<string, unknown> | unknown[]; key: string };

function placesIn(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value).flatMap((key) => {
    const holder = value as Record<string, unknown>;
    return [{ holder, key }, ...placesIn(holder[key])];
  });
}

/** The value with one part of it made odd, taken out, or joined by another that nobody asked for. */
export const spoiled = (values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(values, fc.nat(), fc.constantFrom('replace', 'replace', 'drop', 'add'), oddValue)
    .map(([value, at, how, odd]) => {
      const copy: unknown = structuredClone(value);
      const places = placesIn(copy);
      const place = places[at % Math.max(1, places.length)];
      if (!place) return odd;
      const { holder, key } = place as { holder: Record<string, unknown>; key: string };
      if (how === 'drop') delete holder[key];
      else holder[how === 'add' ? `${key}x` : key] = odd;
      return copy;
    });
