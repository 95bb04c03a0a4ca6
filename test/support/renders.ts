import { randomUUID } from 'node:crypto';
import { inArray } from 'drizzle-orm';
import { v7 as uuidv7 } from 'uuid';
import type { Db } from '../../lib/db/client.ts';
import { exerciseRenders } from '../../lib/db/schema/index.ts';
import { anExercise, shaOf } from './clinic.ts';
import { aRecipe } from './recipes.ts';

type NewRender = Partial<typeof exerciseRenders.$inferInsert>;

/** Pending renders as they are, past all enqueueing, in the order given; by default of one specialist's first round. */
export async function insertRenders(db: Db, changes: readonly NewRender[]) {
  const exercise = await anExercise(db);
  const ids = changes.map(() => uuidv7());
  await db.insert(exerciseRenders).values(
    changes.map((change, nth) => ({
      id: ids[nth],
      exerciseId: exercise.id,
      recipeHash: shaOf(randomUUID()),
      language: 'en',
      recipe: aRecipe() as NonNullable<NewRender['recipe']>,
      fairKey: 'specialist-1',
      fairTag: 1,
      ...change,
    })),
  );
  const made = await db.select().from(exerciseRenders).where(inArray(exerciseRenders.id, ids));
  return made.sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
}
