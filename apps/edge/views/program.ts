import { z } from '@hono/zod-openapi';
import type { Who } from '../../../lib/auth/tokens.ts';
import type { Executor } from '../../../lib/db/client.ts';
import { findProgram, type Program, type ProgramItem } from '../../../lib/db/programs.ts';
import { doseSchema } from '../../../lib/domain/recipe.ts';
import { AppError } from '../../../lib/errors.ts';
import { nameIn } from '../names.ts';
import { id, time } from '../openapi.ts';

/** How programmes, their sessions and items are shown and given: for all routes that deal in them. */

export const itemsInput = z
  .array(z.strictObject({ exerciseId: id, dose: doseSchema.prefault({}) }))
  .max(1000)
  .openapi({
    description: 'In order. What a dose leaves out has a default.',
  });

export const lifeStatus = z.enum(['draft', 'published', 'archived']);

export const itemSchema = z.object({
  id,
  exerciseId: id,
  exerciseName: z.string(),
  dose: doseSchema,
  renderId: id.nullable().openapi({ description: 'What the item plays; null before publish.' }),
});

export const programSchema = z
  .object({
    id,
    orgId: id,
    title: z.string(),
    language: z.string(),
    status: lifeStatus,
    createdBy: z.string(),
    createdAt: time,
    updatedAt: time,
    publishedAt: time.nullable(),
  })
  .openapi('Program');

export const programDetail = programSchema
  .extend({
    sessions: z.array(z.object({ id, title: z.string(), status: lifeStatus, items: z.array(itemSchema) })),
  })
  .openapi('ProgramDetail');

export const presentProgram = (program: Program) => ({
  id: program.id,
  orgId: program.orgId,
  title: program.title,
  language: program.language,
  status: program.status,
  createdBy: program.createdBy,
  createdAt: program.createdAt.toISOString(),
  updatedAt: program.updatedAt.toISOString(),
  publishedAt: program.publishedAt?.toISOString() ?? null,
});

export const presentItem = ({ id, exerciseId, exerciseNames, dose, renderId }: ProgramItem, language: string) => ({
  id,
  exerciseId,
  exerciseName: nameIn(exerciseNames, language),
  dose,
  renderId,
});

/** A programme with all that is in it, as this person may see it. Throws `not_found`. */
export async function readProgram(db: Executor, programId: string, who: Who) {
  const found = await findProgram(db, { id: programId, orgId: who.org });
  if (!found) throw new AppError('not_found');
  const { program, sessions } = found;
  return {
    ...presentProgram(program),
    sessions: sessions.map(({ id, title, status, items }) => ({
      id,
      title,
      status,
      items: items.map((item) => presentItem(item, program.language)),
    })),
  };
}

/** The organisation that something new belongs to. Throws `forbidden` for another's, `invalid_request` where a superadmin names none. */
export function ownerOf(who: Who, asked: string | undefined): string {
  if (who.org !== null) {
    if (asked !== undefined && asked !== who.org) throw new AppError('forbidden');
    return who.org;
  }
  if (asked !== undefined) return asked;
  const message = 'A superadmin says for which organisation.';
  throw new AppError('invalid_request', { issues: [{ path: 'orgId', message }] });
}
