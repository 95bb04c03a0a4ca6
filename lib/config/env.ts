import { z } from 'zod';

/** Raised at boot; the message lists every variable that is wrong and what it expects. */
export class ConfigError extends Error {
  readonly problems: string[];
  constructor(app: string, problems: string[]) {
    super(`the configuration of ${app} is not valid:\n${problems.map((p) => `  - ${p}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export type Env = Record<string, string | undefined>;

/**
 * Parses environment variables by a flat zod object whose keys are the variables' names.
 * A variable that is empty, or blank, counts as unset. All problems are reported at once, as `NAME: what it expects`.
 */
export function parseEnv<T extends z.ZodObject>(app: string, schema: T, env: Env = process.env): z.infer<T> {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value.trim() !== ''),
  );
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(
    app,
    result.error.issues.map((issue) => {
      const name = issue.path.join('.');
      const unset = name !== '' && given[name] === undefined;
      return `${name || 'environment'}: ${unset ? `is not set; ${describe(schema, name) ?? issue.message}` : issue.message}`;
    }),
  );
}

function describe(schema: z.ZodObject, name: string): string | undefined {
  const field: unknown = schema.shape[name];
  return field instanceof z.ZodType ? field.description : undefined;
}

/** Field builders, so that every app words its expectations alike. */
export const wholeNumber = (min: number, max: number, what: string) =>
  z
    .preprocess(
      // Not Number() for every text, to which "0x10", "1e3" and " " are numbers, too.
      (value) => (typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value),
      z
        .int({ error: `expects a whole number: ${what}` })
        .min(min, `expects at least ${min}: ${what}`)
        .max(max, `expects at most ${max}: ${what}`),
    )
    .describe(what);

export const integer = (fallback: number, min: number, max: number, what: string) =>
  wholeNumber(min, max, what).default(fallback).describe(`${what} (default ${fallback})`);

const portNumber = wholeNumber(0, 65_535, 'a port number (0 takes any free one)');
export const optionalPort = portNumber.optional();
export const port = (fallback: number) =>
  portNumber.default(fallback).describe(`a port number; 0 takes any free one (default ${fallback})`);

export const url = (what: string, protocols: readonly string[] = ['http:', 'https:']) =>
  z
    .string()
    .refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol), {
      error: `expects a URL (${protocols.map((p) => `${p}//…`).join(' or ')}): ${what}`,
    })
    .describe(`a URL (${protocols.map((p) => `${p}//…`).join(' or ')}): ${what}`);

/** Shortest secret accepted: 128 bits written as hex. */
export const secret = (what: string) =>
  z.string().min(16, `expects at least 16 characters: ${what}`).describe(`at least 16 characters: ${what}`);

export const flag = (fallback: boolean, what: string) =>
  z
    .enum(['true', 'false', '1', '0'], { error: `expects true or false: ${what}` })
    .transform((value) => value === 'true' || value === '1')
    .default(fallback)
    .describe(`true or false: ${what} (default ${fallback})`);

export const commaList = (what: string) =>
  z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean),
    )
    .pipe(z.array(z.string()).min(1, `expects a comma-separated list: ${what}`))
    .describe(`a comma-separated list: ${what}`);

/** Where the media service is: one address, or several with a comma between them; answers a list without doubles. */
export const mediaUrls = commaList('URLs (http:// or https://) of the media service, or of several of them')
  .refine((urls) => urls.every((item) => URL.canParse(item) && /^https?:$/.test(new URL(item).protocol)), {
    error: 'expects URLs (http:// or https://), comma-separated: the media service, or several of them',
  })
  .transform((urls) => [...new Set(urls.map((item) => new URL(item).href.replace(/\/+$/, '')))])
  .describe('URLs (http:// or https://), comma-separated: the media service, or several of them');

/** What every app reads. */
export const commonEnv = {
  NODE_ENV: z
    .enum(['production', 'development', 'test'], { error: 'expects production or development' })
    .default('development')
    .describe('production or development'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'expects fatal, error, warn, info, debug, trace or silent',
    })
    .default('info')
    .describe('a pino level (default info)'),
};

export const postgresUrl = url('the Postgres database', ['postgres:', 'postgresql:']);
export const redisUrl = url('the Redis server', ['redis:', 'rediss:']);

/** What every Redis key begins with; the same for all apps of an installation. */
export const redisPrefix = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'expects 1 to 64 letters, digits, - or _: what every Redis key begins with')
  .default('bakehouse')
  .describe('what every Redis key begins with (default bakehouse)');
