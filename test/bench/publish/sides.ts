import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { eq, sql } from 'drizzle-orm';
import { Client } from 'pg';
import { type Database, openDatabase } from '../../../lib/db/client.ts';
import { mirrorRows } from '../../../lib/db/dispatch.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { exerciseRenders } from '../../../lib/db/schema/index.ts';
import { createMirror } from '../../../lib/queue/mirror.ts';
import { openQueues } from '../../../lib/queue/queues.ts';
import { anExercise, anOrganisation, aProgram } from '../../support/clinic.ts';
import { silentLog } from '../../support/log.ts';
import { setReady } from '../lib/baked.ts';
import { createDatabase } from '../lib/databases.ts';
import type { BenchServices } from '../lib/services.ts';

export interface Published {
  /** Until the transaction was committed. */
  committedMs: number;
  /** Until the queue had everything and the rows said so. */
  totalMs: number;
  statements: number;
}

/** The pipeline's own way: what a publish does in Postgres, and then in the queue. */
export interface OurSide {
  db: Database['db'];
  orgId: string;
  /** A draft of so many items whose recipes nobody has asked for before; or of the same as another one's. */
  aDraft(items: number, like?: string): Promise<string>;
  publish(programId: string): Promise<Published>;
  /** As if all of it were baked. */
  finishAll(): Promise<void>;
  close(): Promise<void>;
}

const LARGEST = 100;

export async function openOurSide({ databaseUrl, redisUrl }: BenchServices): Promise<OurSide> {
  const own = await createDatabase(databaseUrl);
  let statements = 0;
  const database = openDatabase(own.url, { max: 4, appName: 'bench-publish', onStatement: () => void statements++ });
  const { db } = database;
  const queues = openQueues({ redisUrl, prefix: own.name }, silentLog);
  await queues.renders.waitUntilReady();
  const mirror = createMirror({ queue: queues.renders, rows: mirrorRows(db, 1_000_000), log: silentLog });
  const orgId = await anOrganisation(db);
  const dosesOf = new Map<string, { exerciseId: string; dose: { sets: number; reps: number } }[]>();
  return {
    db,
    orgId,
    aDraft: async (items, like) => {
      const exercise = like === undefined ? await anExercise(db, { orgId }) : null;
      const doses =
        (like !== undefined && dosesOf.get(like)) ||
        Array.from({ length: items }, (_, nth) => ({
          exerciseId: exercise?.id ?? '',
          dose: { sets: 1 + Math.floor(nth / LARGEST), reps: 1 + (nth % LARGEST) },
        }));
      const programId = await aProgram(db, orgId, [doses]);
      dosesOf.set(programId, doses);
      return programId;
    },
    publish: async (programId) => {
      statements = 0;
      const started = performance.now();
      const { touched } = await publishProgram(db, { programId, orgId, by: 'specialist-1' });
      const committedMs = performance.now() - started;
      if (!(await mirror.dispatch(touched))) throw new Error('Redis did not take the renders in time');
      return { committedMs, totalMs: performance.now() - started, statements };
    },
    finishAll: async () => {
      await setReady(db, eq(exerciseRenders.status, 'pending'));
      await queues.renders.drain();
    },
    close: async () => {
      await queues.close();
      await database.close();
      await own.drop();
    },
  };
}

export interface Raw {
  /** One multi-row insert of the renders … */
  rendersMs: number;
  /** … one of their first lines of history, in one transaction with it … */
  eventsMs: number;
  /** … and one `addBulk` of their jobs. */
  addBulkMs: number;
  totalMs: number;
}

/** The least that the same rows and jobs cost: in another database with the same tables, through the bare drivers. */
export interface RawSide {
  /** Writes what a publish has written in ours: the same values, in the same order. */
  write(ours: OurSide, programId: string): Promise<Raw>;
  close(): Promise<void>;
}

const RENDER_COLUMNS = [
  ...['id', 'exercise_id', 'recipe_hash', 'language', 'recipe', 'fair_key', 'fair_tag', 'enqueued_round'],
] as const;

export async function openRawSide({ databaseUrl, redisUrl }: BenchServices): Promise<RawSide> {
  const own = await createDatabase(databaseUrl);
  const client = new Client({ connectionString: own.url });
  await client.connect();
  const { hostname: host, port, password } = new URL(redisUrl);
  const prefix = `raw-${randomUUID()}`;
  const kept = { removeOnComplete: { count: 1000 }, removeOnFail: { count: 1000 } };
  const queue = new Queue('renders', {
    connection: { host, port: Number(port), password },
    prefix,
    defaultJobOptions: kept,
  });
  await queue.waitUntilReady();

  const copy = async (from: Database['db'], table: string, condition: ReturnType<typeof sql>) => {
    const { rows } = await from.execute(sql`select * from ${sql.identifier(table)} where ${condition}`);
    for (const row of rows) {
      const names = Object.keys(row);
      await client.query(
        `insert into ${table} (${names.join(', ')}) values (${names.map((_, at) => `$${at + 1}`).join(', ')}) on conflict do nothing`,
        names.map((name) => parameter(row[name])),
      );
    }
  };

  return {
    write: async ({ db, orgId }, programId) => {
      const { rows: renders } = await db.execute<Record<string, string> & { mirrored_priority: number }>(sql`
        select ${sql.raw(RENDER_COLUMNS.map((name) => `r.${name}`).join(', '))}, r.mirrored_priority
          from exercise_renders r
         where r.id in (select i.render_id from session_items i join sessions s on s.id = i.session_id where s.program_id = ${programId})
         order by r.recipe_hash`);
      await copy(db, 'organisations', sql`id = ${orgId}`);
      await copy(db, 'exercises', sql`id in (select exercise_id from exercise_renders where id = ${renders[0]?.id})`);
      const width = RENDER_COLUMNS.length;
      const line = (nth: number, columns: number) =>
        `(${Array.from({ length: columns }, (_, at) => `$${nth * columns + at + 1}`).join(', ')})`;
      const lines = (columns: number) => renders.map((_, nth) => line(nth, columns)).join(', ');
      const insertRenders = `insert into exercise_renders (${RENDER_COLUMNS.join(', ')}) values ${lines(width)}`;
      const insertEvents = `insert into render_events (render_id, generation, to_status, attempt, cause) values ${lines(5)}`;
      const renderValues = renders.flatMap((render) => RENDER_COLUMNS.map((name) => parameter(render[name])));
      const eventValues = renders.flatMap(({ id }) => [id, 0, 'pending', 0, 'published']);
      const jobs = renders.map(({ id, recipe_hash: recipeHash, mirrored_priority: priority }) => ({
        name: 'render',
        data: { renderId: id, generation: 0, recipeHash },
        opts: { jobId: String(recipeHash), priority },
      }));

      const started = performance.now();
      await client.query('begin');
      await client.query(insertRenders, renderValues);
      const rendered = performance.now();
      await client.query(insertEvents, eventValues);
      await client.query('commit');
      const committed = performance.now();
      await queue.addBulk(jobs);
      const added = performance.now();
      await queue.drain();
      await client.query(`update exercise_renders set status = 'ready', master_sha256 = repeat('b', 64), video_guid = 'video-1',
        manifest_url = 'https://zone.invalid/manifest.json', ready_at = now() where status = 'pending'`);
      return {
        rendersMs: rendered - started,
        eventsMs: committed - rendered,
        addBulkMs: added - committed,
        totalMs: added - started,
      };
    },
    close: async () => {
      await queue.obliterate({ force: true });
      await queue.close();
      await client.end();
      await own.drop();
    },
  };
}

/** JSON as text: the driver would make an array of Postgres out of an array. */
const parameter = (value: unknown) =>
  typeof value === 'object' && value !== null && !(value instanceof Date) ? JSON.stringify(value) : value;
