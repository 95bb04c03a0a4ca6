import { setTimeout as delay } from 'node:timers/promises';
import { type Api, bodyOf, createApi, type NewItem } from '../../../lib/client/client.ts';
import type { components } from '../../../lib/client/schema.d.ts';
import type { CliConfig } from '../../../lib/config/cli.ts';
import { openDatabase } from '../../../lib/db/client.ts';
import { countBakes } from '../../../lib/db/renders.ts';
import type { StackDescription } from '../stack/stack.ts';
import { seedGiven, seedInvented } from './clinic.ts';
import { createLiveTable, type TableRow } from './table.ts';

type DemoRender = components['schemas']['Render'];

/** What `demo --json` prints. */
export interface DemoResult {
  programId: string;
  status: 'preparing' | 'ready' | 'failed';
  renders: {
    id: string;
    status: string;
    recipeHash: string;
    masterSha256: string | null;
    durationMs: number | null;
    hlsUrl: string | null;
    manifestUrl: string | null;
  }[];
  /** Videos composed in this run; what was baked before costs nothing. */
  bakes: number;
  elapsedMs: number;
}

export interface DemoOptions {
  stack: StackDescription;
  config: CliConfig;
  /** Videos to use as exercises; none: six invented ones. */
  sources: readonly string[];
  output: NodeJS.WriteStream;
  stopped: AbortSignal;
}

const POLL_MS = 400;

/** Publishes a programme through the API and shows it until it is ready or has failed, or somebody stops it. */
export async function runDemo({ stack, config, sources, output, stopped }: DemoOptions): Promise<DemoResult> {
  const say = (text: string) => output.write(`${text}\n`);
  const manager = createApi(stack.edge.url, stack.tokens.manager);
  const specialist = createApi(stack.edge.url, stack.tokens.specialist);
  const seeding = { api: manager, config, dataDir: stack.dataDir, say };
  const sessions = sources.length > 0 ? await seedGiven(seeding, sources) : await seedInvented(seeding);

  const started = new Date();
  const begun = performance.now();
  const programId = await publish(specialist, sessions, say);
  const program = { params: { path: { id: programId } } };
  const table = createLiveTable(output);
  let renders: DemoRender[] = [];
  let status: DemoResult['status'] = 'preparing';
  for (;;) {
    ({ items: renders } = await bodyOf(specialist.GET('/v1/programs/{id}/renders', program)));
    table.show(renders.map(rowOf), performance.now() - begun);
    ({ status } = await bodyOf(specialist.GET('/v1/programs/{id}/readiness', program)));
    // A failed programme may still have renders under way: what they come to belongs into the picture.
    const settled = renders.every((render) => render.status === 'ready' || render.status === 'failed');
    if (status !== 'preparing' && settled) break;
    if (stopped.aborted) break;
    await delay(POLL_MS, undefined, { signal: stopped }).catch(() => undefined);
  }
  const elapsedMs = Math.round(performance.now() - begun);
  return {
    programId,
    status,
    renders: renders.map(resultOf),
    bakes: await bakesSince(stack.databaseUrl, renders, started),
    elapsedMs,
  };
}

async function publish(api: Api, sessions: NewItem[][], say: (text: string) => void): Promise<string> {
  const draft = {
    title: `Demo ${new Date().toISOString()}`,
    language: 'en',
    sessions: sessions.map((items, index) => ({ title: `Session ${index + 1}`, items })),
  };
  const program = await bodyOf(api.POST('/v1/programs', { body: draft }));
  const params = { path: { id: program.id } };
  const counts = await bodyOf(api.POST('/v1/programs/{id}/publish', { params }));
  await bodyOf(api.POST('/v1/programs/{id}/assignments', { params, body: { patientId: 'dev-patient' } }));
  const items = sessions.flat().length;
  say(
    `published ${items} items in ${sessions.length} session(s): ${counts.total} different videos, ${counts.ready} ready already (cache hit), ${counts.queued} to bake`,
  );
  return program.id;
}

async function bakesSince(databaseUrl: string, renders: readonly DemoRender[], since: Date): Promise<number> {
  const database = openDatabase(databaseUrl, { max: 1 });
  try {
    return await countBakes(
      database.db,
      renders.map((render) => render.id),
      since,
    );
  } finally {
    await database.close();
  }
}

const rowOf = (render: DemoRender): TableRow => ({
  id: render.id,
  name: render.exerciseName,
  status: render.status,
  stage: render.progress?.stage ?? null,
  percent: render.progress?.percent ?? (render.status === 'transcoding' ? 100 : null),
  error: render.status === 'failed' ? (render.error?.sentence ?? 'failed') : null,
});

const resultOf = ({ id, status, recipeHash, masterSha256, durationMs, hlsUrl, manifestUrl }: DemoRender) => ({
  id,
  status,
  recipeHash,
  masterSha256,
  durationMs,
  hlsUrl,
  manifestUrl,
});
