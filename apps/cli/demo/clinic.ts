import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { access } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Api, ApiProblem, bodyOf, type NewItem } from '../../../lib/client/client.ts';
import type { components } from '../../../lib/client/schema.d.ts';
import type { CliConfig } from '../../../lib/config/cli.ts';
import { Refusal } from '../failure.ts';
import { CLIP_NAMES, makeClip, makeRecording, RECORDINGS } from './recordings.ts';

type Exercise = components['schemas']['Exercise'];

/** Small doses: the demo shows the way, not the stamina. One item of each session is the same recipe. */
const DOSES: NonNullable<NewItem['dose']>[] = [
  { sets: 2, reps: 3, restSeconds: 4, leadInSeconds: 3, cues: 'voice' },
  { sets: 1, reps: 4, tempo: { out: null, hold: 1, back: null, pause: null }, leadInSeconds: 3, cues: 'voice' },
  { sets: 1, reps: 2, sides: 'alternating', leadInSeconds: 2, cues: 'beeps' },
  { sets: 2, reps: 2, restSeconds: 3, leadInSeconds: 2, cues: 'beeps' },
  { sets: 1, reps: 2, sides: 'left-right', leadInSeconds: 2, cues: 'beeps' },
  { sets: 1, reps: 3, tempo: { out: 1.5, hold: 0, back: 1.5, pause: 0.5 }, leadInSeconds: 2, cues: 'none' },
];

/** A long recording stands for several repetitions: the demo takes what fits into one. */
const LONGEST_REP_MS = 10_000;
const GIVEN_DOSE: NonNullable<NewItem['dose']> = { sets: 1, reps: 2, leadInSeconds: 1, cues: 'beeps' };

export interface Seeding {
  api: Api;
  config: CliConfig;
  dataDir: string;
  say: (text: string) => void;
}

/** Two sessions of four and three items over six exercises; two of the seven items are the same recipe. */
export async function seedInvented(seeding: Seeding): Promise<NewItem[][]> {
  const known = await exercisesByName(seeding.api);
  const clips = join(seeding.dataDir, 'demo', 'clips');
  const items: NewItem[] = [];
  for (const [index, recording] of RECORDINGS.entries()) {
    const kept = known.get(recording.name);
    const exercise = kept?.source ? kept : await seedExercise(seeding, recording, kept);
    const dose = DOSES[index] ?? {};
    if (dose.cues === 'voice' && !kept?.source) await uploadClips(seeding, exercise.id, clips);
    items.push({ exerciseId: exercise.id, dose });
  }
  const [first] = items;
  return [items.slice(0, 4), [...items.slice(4), ...(first ? [first] : [])]];
}

const makeExercise = (api: Api, name: string) => bodyOf(api.POST('/v1/exercises', { body: { names: { en: name } } }));

async function seedExercise(
  seeding: Seeding,
  recording: (typeof RECORDINGS)[number],
  kept: Exercise | undefined,
): Promise<Exercise> {
  const { api, config, dataDir, say } = seeding;
  say(`recording “${recording.name}”`);
  const file = await makeRecording(config, join(dataDir, 'demo', 'recordings'), recording);
  const exercise = kept ?? (await makeExercise(api, recording.name));
  const body = await openAsBlob(file);
  await bodyOf(api.PUT('/v1/exercises/{id}/source', { params: { path: { id: exercise.id } }, body }));
  return exercise;
}

async function uploadClips({ api, config }: Seeding, exerciseId: string, dir: string): Promise<void> {
  for (const name of CLIP_NAMES) {
    const file = await makeClip(config, dir, name);
    const path = { id: exerciseId, language: 'en', name };
    await bodyOf(
      api.PUT('/v1/exercises/{id}/cues/{language}/{name}', { params: { path }, body: await openAsBlob(file) }),
    );
  }
}

/** One session with an item per file. Throws the API's sentence where a file cannot be used. */
export async function seedGiven(seeding: Seeding, files: readonly string[]): Promise<NewItem[][]> {
  const { api, say } = seeding;
  const known = await exercisesByName(api);
  const items: NewItem[] = [];
  for (const file of files) {
    await access(file).catch(() => {
      throw new Refusal('bad_file', `${file} cannot be read.`);
    });
    const blob = await openAsBlob(file);
    const name = `${basename(file)} ${(await sha256Of(blob)).slice(0, 12)}`;
    const kept = known.get(name);
    const exercise = kept ?? (await makeExercise(api, name));
    const durationMs = kept?.source?.durationMs ?? (await upload(seeding, exercise.id, file, blob));
    if (durationMs > LONGEST_REP_MS) {
      say(`using the first ${LONGEST_REP_MS / 1000} s of ${basename(file)} as the repetition`);
      const body = { repMarks: { startMs: 0, endMs: LONGEST_REP_MS } };
      await bodyOf(api.PATCH('/v1/exercises/{id}', { params: { path: { id: exercise.id } }, body }));
    }
    items.push({ exerciseId: exercise.id, dose: GIVEN_DOSE });
  }
  return [items];
}

/** Answers how long the video is, measured by the media service. */
async function upload({ api, say }: Seeding, exerciseId: string, file: string, blob: Blob): Promise<number> {
  say(`uploading ${basename(file)}`);
  const { facts, warnings } = await bodyOf(
    api.PUT('/v1/exercises/{id}/source', { params: { path: { id: exerciseId } }, body: blob }),
  ).catch((error: unknown) => {
    if (error instanceof ApiProblem)
      throw new Refusal('bad_file', `${basename(file)}: ${error.message}`, { cause: error });
    throw error;
  });
  for (const warning of warnings) say(`  note: ${warning.sentence}`);
  return facts.durationMs;
}

async function sha256Of(blob: Blob): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of blob.stream()) hash.update(chunk);
  return hash.digest('hex');
}

async function exercisesByName(api: Api): Promise<Map<string, Exercise>> {
  const found = new Map<string, Exercise>();
  let cursor: string | null | undefined;
  do {
    const query: { limit: number; cursor?: string } = { limit: 100, ...(cursor && { cursor }) };
    const { items, nextCursor } = await bodyOf(api.GET('/v1/exercises', { params: { query } }));
    for (const exercise of items) if (exercise.names.en) found.set(exercise.names.en, exercise);
    cursor = nextCursor;
  } while (cursor);
  return found;
}
