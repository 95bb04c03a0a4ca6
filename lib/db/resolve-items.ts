import { type SQL, sql } from 'drizzle-orm';
import type { Recipe } from '../domain/recipe.ts';
import { type Resolution, type ResolveInput, resolveRecipe } from '../domain/resolve.ts';
import type { Issue } from '../errors.ts';
import type { Executor } from './client.ts';
import { rows } from './rows.ts';
import type { RepMarks } from './schema/index.ts';

/** An item that has become a recipe. */
export interface ResolvedItem {
  itemId: string;
  exerciseId: string;
  recipe: Recipe;
  hash: string;
}

export interface ResolvedItems {
  items: ResolvedItem[];
  /** One for each item that cannot become a recipe, in words for the clinic. */
  problems: Issue[];
}

interface ItemRow extends Record<string, unknown> {
  id: string;
  session_title: string;
  position: number;
  exercise_id: string;
  dose: ResolveInput['dose'];
}

interface ExerciseRow extends Record<string, unknown> {
  id: string;
  rep_marks: RepMarks;
  sha256: string | null;
  duration_ms: number | null;
  clips: ResolveInput['clips'];
}

/**
 * Turns every item of the sessions that `scope` selects (as `s`) into its recipe, in playing order: two statements
 * however many there are. What an exercise brings is read once, not with each of its items.
 *
 * The "offset" makes Postgres find the items session by session, also by a plan made while there were few: else that
 * reads all items there are.
 */
export async function resolveItems(db: Executor, scope: SQL, language: string): Promise<ResolvedItems> {
  const found = await rows<ItemRow>(
    db,
    sql`select i.id, s.title as session_title, i.position, i.exercise_id, i.dose
          from sessions s
         cross join lateral (select * from session_items where session_id = s.id order by position offset 0) i
         where ${scope}
         order by s.position, i.position`,
  );
  const exerciseIds = [...new Set(found.map((item) => item.exercise_id))];
  const exercises = await rows<ExerciseRow>(
    db,
    sql`select e.id, e.rep_marks, src.sha256, src.duration_ms,
               (select coalesce(jsonb_agg(jsonb_build_object('language', c.language, 'name', c.name, 'sha256', c.sha256)), '[]')
                  from cue_clips c where c.exercise_id = e.id) as clips
          from exercises e
          left join lateral (select sha256, duration_ms from exercise_sources where exercise_id = e.id order by created_at desc limit 1) src on true
         where e.id = any(${sql.param(exerciseIds)}::uuid[])`,
  );
  const exerciseOf = new Map(exercises.map((exercise) => [exercise.id, exercise]));
  const items: ResolvedItem[] = [];
  const problems: Issue[] = [];
  for (const item of found) {
    const resolution = resolve(item, language, exerciseOf.get(item.exercise_id));
    if (resolution.ok) {
      const { recipe, hash } = resolution;
      items.push({ itemId: item.id, exerciseId: item.exercise_id, recipe, hash });
    } else {
      const path = `${item.session_title}, item ${item.position + 1}`;
      problems.push({ path, message: resolution.sentence, code: resolution.code });
    }
  }
  return { items, problems };
}

function resolve({ exercise_id: exerciseId, dose }: ItemRow, language: string, exercise?: ExerciseRow): Resolution {
  const { sha256 = null, duration_ms: durationMs = null, rep_marks: marks = {}, clips = [] } = exercise ?? {};
  const source = sha256 === null || durationMs === null ? null : { sha256, durationMs };
  return resolveRecipe({ exerciseId, language, dose, source, marks, clips });
}
