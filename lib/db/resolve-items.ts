import { type SQL, sql } from 'drizzle-orm';
import type { Recipe } from '../domain/recipe.ts';
import { type Resolution, resolveRecipe } from '../domain/resolve.ts';
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
  item_id: string;
  session_title: string;
  position: number;
  exercise_id: string;
  dose: Parameters<typeof resolveRecipe>[0]['dose'];
  rep_marks: RepMarks;
  sha256: string | null;
  duration_ms: number | null;
}

interface ClipRow extends Record<string, unknown> {
  exercise_id: string;
  language: string;
  name: string;
  sha256: string;
}

/**
 * Turns every item of the sessions that `scope` selects (as `s`) into its recipe, in playing order: two statements
 * however many there are.
 */
export async function resolveItems(db: Executor, scope: SQL, language: string): Promise<ResolvedItems> {
  const found = await rows<ItemRow>(
    db,
    sql`select i.id as item_id, s.title as session_title, i.position, i.exercise_id, i.dose, e.rep_marks, src.sha256, src.duration_ms
          from sessions s
          join session_items i on i.session_id = s.id
          join exercises e on e.id = i.exercise_id
          left join lateral (select sha256, duration_ms from exercise_sources where exercise_id = e.id order by created_at desc limit 1) src on true
         where ${scope}
         order by s.position, i.position`,
  );
  const clips = await rows<ClipRow>(
    db,
    sql`select c.exercise_id, c.language, c.name, c.sha256 from cue_clips c
         where c.exercise_id in (select i.exercise_id from session_items i join sessions s on s.id = i.session_id where ${scope})`,
  );
  const clipsOf = new Map<string, ClipRow[]>();
  for (const clip of clips) {
    const known = clipsOf.get(clip.exercise_id);
    if (known) known.push(clip);
    else clipsOf.set(clip.exercise_id, [clip]);
  }
  const items: ResolvedItem[] = [];
  const problems: Issue[] = [];
  for (const item of found) {
    const resolution = resolve(item, language, clipsOf.get(item.exercise_id) ?? []);
    if (resolution.ok) {
      const { recipe, hash } = resolution;
      items.push({ itemId: item.item_id, exerciseId: item.exercise_id, recipe, hash });
    } else {
      const path = `${item.session_title}, item ${item.position + 1}`;
      problems.push({ path, message: resolution.sentence, code: resolution.code });
    }
  }
  return { items, problems };
}

const resolve = (item: ItemRow, language: string, clips: readonly ClipRow[]): Resolution =>
  resolveRecipe({
    exerciseId: item.exercise_id,
    language,
    dose: item.dose,
    source:
      item.sha256 === null || item.duration_ms === null ? null : { sha256: item.sha256, durationMs: item.duration_ms },
    marks: item.rep_marks,
    clips,
  });
