import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

type Ref = { $ref: string };

export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  propertyNames?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  example?: unknown;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
}

export interface MediaType {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

export interface Answer {
  description: string;
  headers?: Record<string, Ref>;
  content?: Record<string, MediaType>;
}

export interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  security?: object[];
  parameters?: (Parameter | Ref)[];
  requestBody?: { required?: boolean; content: Record<string, MediaType> };
  responses: Record<string, Answer | Ref>;
}

export interface Document {
  openapi: string;
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, Answer>;
    headers: Record<string, { description?: string; schema: Schema; example?: unknown }>;
  };
}

export interface DescribedOperation extends Operation {
  method: string;
  path: string;
  /** With what a reference names in its place. */
  parameters: Parameter[];
  /** Likewise. */
  responses: Record<string, Answer>;
}

const lastOf = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1);

function meantBy<T extends object>(given: T | Ref, described: Record<string, T>): T {
  if (!('$ref' in given)) return given;
  const found = described[lastOf(given.$ref)];
  if (!found) throw new Error(`${given.$ref} is not described`);
  return found;
}

export function operationsOf({ paths, components }: Document): DescribedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
      parameters: (operation.parameters ?? []).map((given) => meantBy(given, components.parameters)),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, given]) => [status, meantBy(given, components.responses)]),
      ),
    })),
  );
}

/** Holds values to schemas of the document; answers what does not fit, or null. */
export function createJudge(document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(document as AnySchema, 'document');
  const compiled = new Map<string, ReturnType<typeof ajv.compile>>();
  return (schema: Schema, value: unknown): string | null => {
    // References in it are meant from the document's root.
    const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"document#/');
    const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text));
    compiled.set(text, validate);
    return validate(value) ? null : ajv.errorsText(validate.errors);
  };
}
