import { existsSync, openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StackDescription } from '../../apps/cli/stack/stack.ts';
import { bodyOf, createApi } from '../../lib/client/client.ts';
import { makeClip, testFfmpeg } from '../support/ffmpeg.ts';
import { type RunningStack, runCli, startUp } from '../support/stack.ts';
import { makeTempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait.ts';

let stack: RunningStack;
let all: StackDescription;
let sql: postgres.Sql;

beforeAll(async () => {
  stack = await startUp(await makeTempDir(), { RENDER_LEASE_MS: '3000', SWEEP_MS: '300', RENDER_BACKOFF_MS: '200' });
  all = stack.all;
  sql = postgres(all.databaseUrl, { max: 2, onnotice: () => {} });
}, 120_000);

afterAll(async () => {
  await sql?.end();
  await stack?.stop();
  // Or commands would take it for a running one.
  expect(existsSync(join(all.dataDir, 'stack.json'))).toBe(false);
});

type Person = 'manager' | 'specialist' | 'patient';
const as = (person: Person) => createApi(all.edge.url, all.tokens[person]);
const ofId = (id: string) => ({ params: { path: { id } } });

async function anExercise(seconds: number): Promise<string> {
  const clip = await makeClip(await makeTempDir(), { seconds, size: '320x240', rate: 25, audio: true });
  const body = { names: { en: `Clip of ${seconds} s` } };
  const { id } = await bodyOf(as('manager').POST('/v1/exercises', { body }));
  const film = await openAsBlob(clip);
  const { facts } = await bodyOf(as('manager').PUT('/v1/exercises/{id}/source', { ...ofId(id), body: film }));
  expect(facts).toMatchObject({ variableFrameRate: false });
  return id;
}

const dose = { sets: 1, reps: 2, leadInSeconds: 1, cues: 'beeps' as const };

async function aProgram(exerciseIds: string[]): Promise<string> {
  const items = exerciseIds.map((exerciseId) => ({ exerciseId, dose }));
  const body = { title: 'Knee', language: 'en', sessions: [{ title: 'One', items }] };
  return (await bodyOf(as('specialist').POST('/v1/programs', { body }))).id;
}

const publish = (programId: string) => bodyOf(as('specialist').POST('/v1/programs/{id}/publish', ofId(programId)));
const rendersOf = async (programId: string) =>
  (await bodyOf(as('specialist').GET('/v1/programs/{id}/renders', ofId(programId)))).items;

const ready = (programId: string) =>
  waitFor(
    async () => {
      const readiness = await bodyOf(as('specialist').GET('/v1/programs/{id}/readiness', ofId(programId)));
      if (readiness.status === 'failed') throw new Error(JSON.stringify(readiness));
      return readiness.status === 'ready';
    },
    { label: 'the programme to be ready', timeoutMs: 90_000, everyMs: 200 },
  );

async function probeDuration(url: string): Promise<number> {
  const { stdout } = await execa(testFfmpeg().ffprobePath, [
    '-v',
    'error',
    '-show_entries',
    'format=duration',
    '-of',
    'csv=p=0',
    url,
  ]);
  return Number(stdout);
}

describe('publish to ready', () => {
  it('bakes a recipe once though it is published twice at once and used by two items, and it plays', {
    timeout: 150_000,
  }, async () => {
    const exerciseId = await anExercise(1);
    const programId = await aProgram([exerciseId, exerciseId]);
    const body = { patientId: 'dev-patient' };
    await bodyOf(as('specialist').POST('/v1/programs/{id}/assignments', { ...ofId(programId), body }));

    const published = await Promise.all([publish(programId), publish(programId)]);
    for (const counts of published) expect(counts).toMatchObject({ total: 1, failed: 0 });

    const program = await bodyOf(as('specialist').GET('/v1/programs/{id}', ofId(programId)));
    const session = ofId(program.sessions[0]!.id);
    const tooEarly = await as('patient').POST('/v1/sessions/{id}/runs', session);
    expect(tooEarly).toMatchObject({ response: { status: 409 }, error: { code: 'session_preparing' } });

    await ready(programId);
    const renders = await rendersOf(programId);
    expect(renders).toHaveLength(1);
    const [render] = renders;
    // Lead-in 1 s, two repetitions of 1 s, 2 s of end.
    expect(render).toMatchObject({ status: 'ready', durationMs: 5_000 });
    expect(Math.abs((await probeDuration(render!.hlsUrl!)) - 5)).toBeLessThan(0.2);
    const events = await sql`select cause from render_events where render_id = ${render!.id} order by id`;
    expect(events.map(({ cause }) => cause)).toEqual(['published', 'claim', 'uploaded', 'webhook']);

    const manifest = (await (await fetch(render!.manifestUrl!)).json()) as Record<string, unknown>;
    expect(JSON.stringify(manifest)).toContain(render!.masterSha256!);

    const play = await bodyOf(as('patient').GET('/v1/sessions/{id}/play', session));
    expect(play).toMatchObject({ status: 'ready', items: [{ status: 'ready' }, { status: 'ready' }] });
    expect((await as('patient').POST('/v1/sessions/{id}/runs', session)).response.status).toBe(201);

    const again = await publish(await aProgram([exerciseId]));
    expect(again).toEqual({ total: 1, ready: 1, queued: 0, inProgress: 0, failed: 0 });
  });

  it('is what docs/walkthrough.sh walks through, step by step', { timeout: 150_000 }, async () => {
    const clip = await makeClip(await makeTempDir(), { seconds: 1, size: '320x240', rate: 25 });
    const { exitCode, stdout, stderr } = await execa('bash', ['docs/walkthrough.sh', clip], {
      cwd: join(import.meta.dirname, '../..'),
      env: {
        BAKEHOUSE_URL: all.edge.url,
        MANAGER_TOKEN: all.tokens.manager,
        SPECIALIST_TOKEN: all.tokens.specialist,
        PATIENT_TOKEN: all.tokens.patient,
      },
      reject: false,
    });
    expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
    for (const shown of [
      /^source .* 1000 ms/m,
      /^preview .*"total":2,"ready":0,"toBake":2/m,
      /^publish .*"queued":2.*replayed true$/m,
      /^too early .*409 session_preparing$/m,
      /^cancel .*"failed","generation":0/m,
      /^failed .*"status":"failed","code":"cancelled"/m,
      /^retry .*"pending","generation":1/m,
      /^unchanged .*304$/m,
      /^play .*2: Squat, \d+ ms, http/m,
      /^playlist .*#EXTM3U/m,
      /^run .*the patient trains$/m,
      /^ready .*409 render_ready$/m,
    ]) {
      expect(stdout).toMatch(shown);
    }
  });

  it('answers while Redis is gone, and what was published then becomes ready', { timeout: 150_000 }, async () => {
    const programId = await aProgram([await anExercise(2)]);
    const client = new Redis(all.redisUrl);
    client.on('error', () => {});
    const before = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
    process.kill(before, 'SIGKILL');
    const started = performance.now();
    expect(await publish(programId)).toMatchObject({ total: 1, queued: 1 });
    expect(performance.now() - started).toBeLessThan(1_500);
    await ready(programId);
    await waitFor(async () => Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]) !== before, {
      label: 'Redis to be back',
    });
    client.disconnect();
  });

  it('survives the death of the worker and of media in the middle of a bake', { timeout: 150_000 }, async () => {
    const programId = await aProgram([await anExercise(3)]);
    await publish(programId);
    await waitFor(async () => (await rendersOf(programId))[0]?.status === 'rendering', {
      label: 'the bake to begin',
    });
    process.kill(all.media.pid!, 'SIGKILL');
    process.kill(all.worker.pid!, 'SIGKILL');
    await ready(programId);
  });

  it('keeps strangers away from the queues and from the API', async () => {
    for (const path of ['/ops/queues', '/ops/queues/', '/ops/queues/api/queues', '/v1/programs']) {
      expect((await fetch(`${all.edge.url}${path}`, { redirect: 'manual' })).status).toBe(401);
    }
    const login = Buffer.from(`${all.ops.user}:${all.ops.password}`).toString('base64');
    for (const path of ['/ops/queues', '/ops/queues/']) {
      expect((await fetch(`${all.edge.url}${path}`, { headers: { authorization: `Basic ${login}` } })).status).toBe(
        200,
      );
    }
  });

  it('refuses a forged webhook and keeps a genuine one', async () => {
    const body = JSON.stringify({ VideoLibraryId: 133, VideoGuid: 'nobody', Status: 3 });
    const headers = {
      'content-type': 'application/json',
      'x-bunnystream-signature-version': 'v1',
      'x-bunnystream-signature-algorithm': 'hmac-sha256',
    };
    const forged = await fetch(all.webhook.url, {
      method: 'POST',
      body,
      headers: { ...headers, 'x-bunnystream-signature': 'a'.repeat(64) },
    });
    expect(forged.status).toBe(401);
    const genuine = await fetch(`${all.webhook.url}?token=${all.webhook.token}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    expect(genuine.status).toBe(200);
    expect(await sql`select status, verified_by from webhook_events where video_guid = 'nobody'`).toMatchObject([
      { status: 3, verified_by: 'token' },
    ]);
  });

  it('is what the commands of an operator in another terminal look at and change', { timeout: 150_000 }, async () => {
    const command = (...args: string[]) => runCli([...args, '--json', '--data-dir', all.dataDir]);
    const [render] = await sql`select id, generation from exercise_renders where status = 'ready' order by id limit 1`;
    const retried = await command('retry', '--force', render!.id);
    expect(retried.exitCode, retried.stderr).toBe(0);
    await waitFor(
      async () =>
        (
          await sql`select 1 from exercise_renders where id = ${render!.id} and status = 'ready' and generation > ${render!.generation}`
        ).count,
      { label: 'the render to be made anew', timeoutMs: 90_000, everyMs: 200 },
    );
    expect((await command('replay', '--unapplied')).exitCode).toBe(0);
    const doctor = await command('doctor', '--pipeline');
    expect(JSON.parse(doctor.stdout), doctor.stdout).toMatchObject({ ok: true, queues: { renders: { active: 0 } } });
    expect(doctor.exitCode).toBe(0);
  });
});
