import { Argument, type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import type { Executor } from '../../../lib/db/client.ts';
import { findByPrefixes, type RenderCondition, type RenderFilter } from '../../../lib/db/operate.ts';
import { RENDER_STATUSES } from '../../../lib/domain/render-states.ts';
import { ERRORS, isErrorCode } from '../../../lib/errors.ts';
import { Refusal } from '../failure.ts';
import { duration, listOf, uuid } from './parse.ts';

/** What says which renders a command is about. */
export interface SelectionOptions {
  status?: RenderCondition[];
  code?: string[];
  program?: string;
  exercise?: string;
  org?: string;
  language?: string;
  olderThan?: number;
  all?: boolean;
}

const CONDITIONS = [...RENDER_STATUSES, 'waiting'] as const;
const SHORTEST_PREFIX = 8;
const MOST_IDS = 1_000;

const prefixes = (text: string, before: string[] = []): string[] => {
  if (!/^[0-9a-f-]{8,64}$/i.test(text))
    throw new InvalidArgumentError(
      `Expects an id or a recipe hash, or the first ${SHORTEST_PREFIX} characters or more of one.`,
    );
  if (before.length === MOST_IDS) throw new InvalidArgumentError(`Expects at most ${MOST_IDS} of them.`);
  return [...before, text.toLowerCase()];
};

const code = z.string().refine(isErrorCode);

/** Adds the ids and filters that `retry` and `cancel` share. */
export const withSelection = (command: Command): Command =>
  command
    .addArgument(
      new Argument('[ids...]', 'renders: ids or recipe hashes, or a unique beginning of them').argParser(prefixes),
    )
    .option('--status <status,…>', CONDITIONS.join(', '), listOf(z.enum(CONDITIONS), `one of ${CONDITIONS.join(', ')}`))
    .option('--code <code,…>', 'error codes, such as transcode_truncated', listOf(code, 'codes of our errors'))
    .option('--program <id>', 'those that this programme plays', uuid)
    .option('--exercise <id>', 'those of this exercise', uuid)
    .option('--org <id>', 'those that sessions of this organisation play', uuid)
    .option('--language <tag>', 'those in this language')
    .option('--older-than <time>', 'longer in their present status than 45s, 30m, 2h or 1d', duration)
    .option('--all', 'every render that the command can do something for');

/**
 * The filter that these options mean. Named renders are taken whatever their status; otherwise only those in `usual`
 * conditions. Throws where nothing narrows it down and `--all` does not say so, and where an id is unknown or ambiguous.
 */
export async function resolveSelection(
  db: Executor,
  named: readonly string[],
  options: SelectionOptions,
  usual: readonly RenderCondition[],
): Promise<RenderFilter> {
  const { status, code, program, exercise, org, language, olderThan } = options;
  const filter: RenderFilter = {
    ...(named.length > 0 && { ids: await resolveIds(db, named) }),
    ...(status && { conditions: status }),
    ...(code && { codes: code }),
    ...(program && { programId: program }),
    ...(exercise && { exerciseId: exercise }),
    ...(org && { orgId: org }),
    ...(language && { language }),
    ...(olderThan && { olderThanMs: olderThan }),
  };
  if (Object.keys(filter).length === 0 && !options.all)
    throw new Refusal('usage', 'Say which renders: ids, filters, or --all for every one.');
  return filter.ids || filter.conditions ? filter : { ...filter, conditions: usual };
}

async function resolveIds(db: Executor, named: readonly string[]): Promise<string[]> {
  const found = await findByPrefixes(db, [...new Set(named)]);
  const problems = found.flatMap(({ prefix, count }) => {
    if (count === 1) return [];
    return count === 0
      ? [`No render has an id or a recipe hash that begins with ${prefix}.`]
      : [`${count} renders begin with ${prefix}: give more of it.`];
  });
  if (problems.length > 0) throw new Refusal('unknown_id', problems.join('\n'));
  return [...new Set(found.flatMap(({ id }) => id ?? []))];
}

/** For --help: the codes that --code takes. */
export const CODES = `Error codes: ${Object.keys(ERRORS).join(', ')}.`;
